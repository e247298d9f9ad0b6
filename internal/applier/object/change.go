package object

// Change says what became of one object.
type Change string

// What an operation can do to an object.
const (
	Created   Change = "created"
	Updated   Change = "updated"
	Unchanged Change = "unchanged"
	Deleted   Change = "deleted"

	// Released: the release has dropped an object that is kept, see [IsKept].
	Released Change = "released"
)
