package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// setting is one field of a struct, under its name in the document.
type setting struct{ name, value string }

// fields are all fields of a struct in their order, so that one that is added cannot be forgotten where they are
// shown or compared.
func fields(of any) (out []setting) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		value := strings.Trim(fmt.Sprint(v.Field(i).Interface()), "[]")
		if v.Field(i).Kind() == reflect.Struct {
			text, _ := json.Marshal(v.Field(i).Interface()) // of plain fields: never fails
			value = string(text)
		}
		out = append(out, setting{name, value})
	}
	return out
}
