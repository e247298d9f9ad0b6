package impersonation

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// maxWarnings is how many texts are kept, and maxWarningBytes how much of each. Who
	// answers for an API writes them: a webhook of anybody's, too.
	maxWarnings     = 100
	maxWarningBytes = 1000

	// warningCode is that of a warning that is about the request, see RFC 7234, 5.5.7.
	warningCode = 299
)

// Warnings are what the API server has had to say about requests that it answered, such as
// that a version of an API is deprecated. The zero value has none.
type Warnings struct {
	mu    sync.Mutex
	texts map[string]struct{}
}

type warningsKey struct{}

// CollectWarnings has the warnings to all requests as a ServiceAccount collected that are made
// with the context.
func CollectWarnings(ctx context.Context) (context.Context, *Warnings) {
	warnings := &Warnings{}
	return context.WithValue(ctx, warningsKey{}, warnings), warnings
}

// Texts are all that differ, sorted, each in one line; a hundred at most.
func (w *Warnings) Texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.texts))
}

func (w *Warnings) add(text string) {
	text = excerpt.Line(text, maxWarningBytes)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.texts == nil {
		w.texts = map[string]struct{}{}
	}
	if len(w.texts) < maxWarnings {
		w.texts[text] = struct{}{}
	}
}

// collector hands warnings to who collects those of the request's context. Without it,
// client-go writes them to the standard error output.
type collector struct{}

var _ rest.WarningHandlerWithContext = collector{}

// HandleWarningHeaderWithContext implements [rest.WarningHandlerWithContext].
func (collector) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	warnings, collected := ctx.Value(warningsKey{}).(*Warnings)
	if collected && code == warningCode && text != "" {
		warnings.add(text)
	}
}
