package admission

// Scope is where budgets and quotas are attached: everything (the zero value), a namespace, a lane of a namespace, or
// a tag and its value. It applies to executions created from then on.
type Scope struct {
	Namespace, Lane string
	TagKey, Tag     string
}
