package codes

// What those a member of a flow depends on must come to before it may run, see flowfabric.GroupRecord.
const (
	AllOf     = "all"
	AnyOf     = "any"
	Quorum    = "quorum"
	AllEnded  = "ended"
	AnyFailed = "failed"
)
