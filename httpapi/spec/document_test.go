// Package spec holds the committed OpenAPI document against the specification, with a validator of others. It is a
// module of its own, so that nobody who uses the API's package has the validator's dependencies.
package spec

import (
	"os"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

func TestDocumentIsOpenAPI(t *testing.T) {
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	if version := document.GetVersion(); version != "3.1.0" {
		t.Errorf("version %s", version)
	}
	model, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	if n := model.Model.Paths.PathItems.Len(); n < 30 {
		t.Errorf("%d paths", n)
	}
	checked, errs := validator.NewValidator(document)
	for _, err := range errs {
		t.Error(err)
	}
	if valid, problems := checked.ValidateDocument(); !valid {
		for _, p := range problems {
			t.Errorf("%s: %s", p.Message, p.Reason)
			for _, s := range p.SchemaValidationErrors {
				t.Errorf("  %s at %s", s.Reason, s.FieldPath)
			}
		}
	}
}
