package hook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Operation is what hooks come before and after.
type Operation string

// The operations that have hooks.
const (
	Install Operation = "install"
	Upgrade Operation = "upgrade"
	Delete  Operation = "delete"
)

// Progress is how far the hooks of an operation have come, as a release record remembers it.
type Progress struct {
	Operation Operation `json:"operation"`

	// After says that the operation itself is done, and the hooks after it are due.
	After bool `json:"after,omitempty"`

	// Extension is the UID of the one that is being deleted; empty for other operations. The records
	// of one can be those of another later, which takes them over.
	Extension string `json:"extension,omitempty"`

	// Key is known to nobody who cannot read the record, see [Progress.Mark]. It is empty in records of
	// earlier versions of this program.
	Key string `json:"key,omitempty"`

	// Done is how many hooks of the event have succeeded.
	Done int `json:"done,omitempty"`

	// Begun is how often the object of the next one was created, or was about to be.
	Begun int `json:"begun,omitempty"`

	// FailedAt is when the next one failed, and Why what was told of it; nil if it did not. Gone says
	// that its object was gone by itself, and Blocked that there is another one in its place.
	FailedAt *time.Time `json:"failedAt,omitempty"`
	Why      string     `json:"why,omitempty"`
	Gone     bool       `json:"gone,omitempty"`
	Blocked  bool       `json:"blocked,omitempty"`

	// ByContent is true if the installed version uses the other object, so that it must not be deleted for the hook.
	ByContent bool `json:"byContent,omitempty"`

	// GivenUp says that those that are left are not run, as something else is wanted by now.
	GivenUp bool `json:"givenUp,omitempty"`
}

// Event whose hooks are due.
func (p Progress) Event() Event {
	if p.After {
		return Event("post-" + string(p.Operation))
	}
	return Event("pre-" + string(p.Operation))
}

// at is the progress of the same operation with so many hooks done.
func (p Progress) at(done int) Progress {
	return Progress{Operation: p.Operation, After: p.After, Extension: p.Extension, Key: p.Key, Done: done}
}

// Begin is the progress of an operation, or of what comes after it, before its first hook.
func Begin(operation Operation, after bool) Progress {
	return Progress{Operation: operation, After: after, Key: rand.Text()}
}

// Mark adds to the name of a run what tells that it was written by whoever has the key. What is on
// other objects does not tell it.
func (p Progress) Mark(run string) string {
	if p.Key == "" {
		return run
	}
	mac := hmac.New(sha256.New, []byte(p.Key))
	_, _ = io.WriteString(mac, run)
	return run + "/" + hex.EncodeToString(mac.Sum(nil)[:16])
}

// Succeeded is the progress after one hook more.
func (p Progress) Succeeded() Progress { return p.at(p.Done + 1) }

// Failed is the progress when the next hook has failed.
func (p Progress) Failed(at time.Time, why string) Progress {
	failed, at := p.at(p.Done), at.UTC().Truncate(time.Second)
	failed.FailedAt, failed.Why = &at, why
	return failed
}

// Anew is the progress when the hook that has failed is run once more.
func (p Progress) Anew() Progress { return p.at(p.Done) }

// GiveUp is the progress when those that are left are not to be run.
func (p Progress) GiveUp() Progress {
	given := p.at(p.Done)
	given.GivenUp = true
	return given
}

// Begins is the progress when the object of the next hook is about to be created.
func (p Progress) Begins() Progress {
	p.Begun++
	return p
}

// retryAfter is when a hook that has failed is run again. Most often somebody has to do something
// first, and it may do half of its work each time.
const retryAfter = 10 * time.Minute

// RetryIn is how long it is until the hook that has failed is run again; zero for now.
func (p Progress) RetryIn(now time.Time) time.Duration {
	if p.FailedAt == nil {
		return 0
	}
	return max(p.FailedAt.Add(retryAfter).Sub(now), 0)
}

// Remedy says what to do about a hook that has failed, and when it is run again. A log there is to
// see only where the object is that has run, and only that can be deleted to have it run sooner.
func (p Progress) Remedy(failed Hook) string {
	const again = "it is run again every ten minutes"
	if p.ByContent {
		return "do not delete it, as the installed version uses it; choose a version in which one of the two has another name; " + again
	}
	rests := p.Gone || failed.HasPolicy(Failed)
	switch {
	case p.Gone:
		return "find the client that deletes it, and stop that client; " + again
	case p.Blocked && rests:
		return again
	case rests:
		return "mend what it needs; its delete policy has had it deleted, with its log; " + again
	case p.Blocked:
		return again + ", or within one if what is in its place is deleted"
	}
	return "see the log of its pods, and mend what it needs; " + again + ", or within one if it is deleted"
}

// Encode gives nothing for none.
func Encode(progress *Progress) (string, error) {
	if progress == nil {
		return "", nil
	}
	text, err := json.Marshal(progress)
	return string(text), err
}

// Decode is the other way round. What cannot be read is an error: to begin anew would run twice
// what is to be run once.
func Decode(text string) (*Progress, error) {
	if text == "" {
		return nil, nil
	}
	var progress Progress
	if err := json.Unmarshal([]byte(text), &progress); err != nil {
		return nil, fmt.Errorf("reading how far hooks have come: %w", err)
	}
	if !slices.Contains([]Operation{Install, Upgrade, Delete}, progress.Operation) || progress.Done < 0 {
		return nil, fmt.Errorf("reading how far hooks have come: %d of %s have succeeded, which nobody has written", progress.Done, excerpt.Quote(string(progress.Operation)))
	}
	return &progress, nil
}
