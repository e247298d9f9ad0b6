package installation

import (
	"errors"
	"fmt"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// HookUnderwayError says that an operation waits for a hook, which runs. Nothing has failed.
type HookUnderwayError struct {
	Event  hook.Event
	Object object.Key

	// Going says that it waits until an object of an earlier run is gone.
	Going bool

	// RecheckAfter is when to look again.
	RecheckAfter time.Duration
}

func (e *HookUnderwayError) Error() string {
	if e.Going {
		return fmt.Sprintf("waits until %s of an earlier run is gone, which is a %s hook", e.Object, e.Event)
	}
	return fmt.Sprintf("waits for the %s hook %s", e.Event, e.Object)
}

// HookFailedError says that a hook has failed, and with it the operation.
type HookFailedError struct {
	Event  hook.Event
	Object object.Key

	// Why is one line: what the object, and the last line of its log, have to say.
	Why string

	// Next is what to do about it, and when it is run again.
	Next string

	// RetryIn is how long it is until it is run again.
	RetryIn time.Duration
}

func (e *HookFailedError) Error() string {
	return fmt.Sprintf("the %s hook %s has failed: %s", e.Event, e.Object, e.Why)
}

// IsAfter says that what is installed has all its content.
func (e *HookFailedError) IsAfter() bool {
	return e.Event == hook.PostInstall || e.Event == hook.PostUpgrade
}

// IsHook says that an operation has ended for a hook that runs or has failed.
func IsHook(err error) bool {
	_, isUnderway := errors.AsType[*HookUnderwayError](err)
	_, hasFailed := errors.AsType[*HookFailedError](err)
	return isUnderway || hasFailed
}

// DeletionHooks says which hooks a Helm chart has for its deletion.
type DeletionHooks struct {
	// Before says that there are some before the deletion, and that what comes after these has not begun.
	// After says that there are some after that of the content.
	Before, After bool

	// ContentGoes says that the content is being deleted for those after that, and is not to be put
	// back.
	ContentGoes bool
}
