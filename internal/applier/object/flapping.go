package object

import "fmt"

// Flapping is an object that is changed again as often as it is repaired.
type Flapping struct {
	Object Key

	// Managers are the field managers that wrote what was repaired, sorted. There
	// are none if they are not known, as of an object that was deleted.
	Managers []string
}

// String names the object and who changes it.
func (f Flapping) String() string {
	if len(f.Managers) == 0 {
		return f.Object.String()
	}
	return fmt.Sprintf("%s (by %s)", f.Object, NameManagers(f.Managers))
}
