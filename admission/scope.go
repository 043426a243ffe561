package admission

// Scope is where gates are attached: everything (the zero value), a namespace, a lane of a namespace, or
// a tag and its value. It applies to executions created from then on.
type Scope struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"alone: all of it"`
	Lane      string `json:"lane,omitempty" jsonschema:"of the namespace, or of the default one"`
	TagKey    string `json:"tag_key,omitempty" jsonschema:"goes with neither"`
	Tag       string `json:"tag,omitempty" jsonschema:"its value"`
}
