package object

import "fmt"

// CollisionError reports that the API server refuses an object because of another object of the same extension,
// which is not deleted before. Nothing was written.
type CollisionError struct {
	Other Key

	// Kept is true if the new revision drops the other object without deleting it, or deletes it last because of its data.
	Kept bool

	// Err is the answer of the API server.
	Err error
}

func (e *CollisionError) Error() string {
	if e.Kept {
		return fmt.Sprintf("%v: %s of this extension blocks it, and the upgrade does not delete that object", e.Err, e.Other)
	}
	return fmt.Sprintf("%v: %s of this extension blocks it, and the new version contains that object too", e.Err, e.Other)
}

// Unwrap returns the answer of the API server.
func (e *CollisionError) Unwrap() error { return e.Err }
