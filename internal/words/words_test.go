package words

import (
	"reflect"
	"testing"
)

type Embedded struct {
	Session string `see:"operator"`
	Shown   string
}

type word struct {
	Name    string
	Message string `see:"payload,failure"`
	Embedded
	Inner *Embedded
	Rows  []Embedded
	Next  *word
}

func TestBlankedLeavesOutWhatAClassOfReadersHas(t *testing.T) {
	whole := func() word {
		return word{Name: "n", Message: "m", Embedded: Embedded{"s", "e"}, Inner: &Embedded{"s", "x"},
			Rows: []Embedded{{"s", "1"}, {"s", "2"}}, Next: &word{Rows: []Embedded{{"s", "3"}}}}
	}
	w := whole()
	want := word{Name: "n", Message: "m", Embedded: Embedded{"", "e"}, Inner: &Embedded{"", "x"},
		Rows: []Embedded{{"", "1"}, {"", "2"}}, Next: &word{Rows: []Embedded{{"", "3"}}}}
	if got := Blanked(w, "operator"); !reflect.DeepEqual(got, want) {
		t.Errorf("Blanked is %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(w, whole()) {
		t.Errorf("Blanked changed what it was given: %+v", w)
	}
	if got := Blanked(any([]word{w}), "operator"); !reflect.DeepEqual(got, []word{want}) {
		t.Errorf("Blanked of an interface is %+v", got)
	}
	if got := Blanked([]int{1}, "operator"); !reflect.DeepEqual(got, []int{1}) || Blanked[any](nil) != nil {
		t.Errorf("Blanked changed what has no tags: %v", got)
	}
}

func TestShownTellsWhatAFieldIs(t *testing.T) {
	var about []string
	got := Shown([]*word{{Message: "m", Next: &word{}}}, func(class, what string, field reflect.Value) {
		if class == "payload" {
			about = append(about, what)
			field.SetString("[withheld]")
		}
	})
	if !reflect.DeepEqual(about, []string{"failure", "failure"}) || got[0].Message != "[withheld]" {
		t.Errorf("Shown told of %v and shows %q, want two failures, withheld", about, got[0].Message)
	}
}
