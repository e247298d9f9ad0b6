package installation

import (
	"fmt"
	"strings"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Uses are the definitions that an extension owns, with what there is of their kinds.
type Uses struct {
	// Definitions are sorted by their names.
	Definitions []Use

	// RecheckAfter is when to ask again, if nobody is woken before; zero if there is
	// nothing to wait for.
	RecheckAfter time.Duration
}

// Use is how a CustomResourceDefinition is used.
type Use struct {
	Definition string

	// Count is how many custom resources there are, and Own how many of them the
	// extension owns itself.
	Count, Own int64

	// First are up to [MaxFirst] of them, those first that the extension does not own.
	First []StoredObject

	// HeldCount is the number of custom resources with finalizers, as far as they were read. Held are up to [MaxHeld] of
	// them.
	HeldCount int64
	Held      []StoredObject

	// Shared says that the definition has other owners too. It stays with its custom
	// resources as long as one of them is there.
	Shared bool

	// Err says that they could not be counted.
	Err error
}

// MaxHeld bounds the custom resources of a definition that are named because of their finalizers.
const MaxHeld = 3

// NamespaceUse counts the objects in a Namespace of an extension that the extension does not own.
type NamespaceUse struct {
	Namespace string

	// Count is the number of objects, and First lists up to [MaxFirst] of them.
	Count int64
	First []object.Key

	// Err is set if they could not be counted.
	Err error
}

// MaxFirst is how many custom resources of a definition are named.
const MaxFirst = 10

// StoredObject is a custom resource.
type StoredObject struct {
	Key        object.Key
	Finalizers []string
	Deleted    bool // it waits for its finalizers
	Created    time.Time
}

// String is the object, with what it waits for if it is being deleted.
func (o StoredObject) String() string {
	if !o.Deleted || len(o.Finalizers) == 0 {
		return o.Key.String()
	}
	return o.WithFinalizers()
}

// WithFinalizers returns the object with its finalizers.
func (o StoredObject) WithFinalizers() string {
	return fmt.Sprintf("%s with finalizers [%s]", o.Key, strings.Join(o.Finalizers, " "))
}

// ConversionError says that a definition cannot do without its operator, because that
// converts the objects that are stored.
type ConversionError struct {
	Definition     string
	Stored, Served []string // versions
}

func (e *ConversionError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %q is converted by a webhook of the operator: versions %s are stored, and %s are served",
		e.Definition, strings.Join(e.Stored, ", "), strings.Join(e.Served, ", "))
}

// UncountedError says that nobody may list custom resources who could count them.
type UncountedError struct {
	Resource  string // with its group
	Account   string // namespace/name of the ServiceAccount
	ByAccount error
	ByOwn     error
}

func (e *UncountedError) Error() string {
	return fmt.Sprintf("neither ServiceAccount %q nor the controller may list %s", e.Account, e.Resource)
}

// Unwrap gives what each of them was told.
func (e *UncountedError) Unwrap() []error { return []error{e.ByAccount, e.ByOwn} }
