package drift

import (
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxDenied is how long a shared watch that has worked is denied until that is believed:
	// an API server that has just started denies what it does not know of yet.
	maxDenied = time.Minute

	// maxFailing is how long a shared watch fails in a row without having come further until
	// it is given up.
	maxFailing = 5 * time.Minute
)

// patience says when a shared watch is given up. Its extensions can do without it.
type patience struct {
	worked        bool // has come as far as any resource version
	denied, fails time.Time
}

// advance is called when the watch has come further.
func (p *patience) advance() { *p = patience{worked: true} }

// endsWith is called with each error that the watch ends with, and says whether it is given
// up. Nobody can make an API server be away, or busy, so that this says nothing of the watch:
// thousands of others would only be worse.
func (p *patience) endsWith(err error, now time.Time) bool {
	isDenied := apierrors.IsForbidden(err)
	if !isDenied {
		p.denied = time.Time{}
	}
	switch {
	case isDenied:
		return !p.worked || lasts(&p.denied, now, maxDenied)
	case apierrors.IsNotAcceptable(err): // the server has nothing but whole objects
		return true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isOfConnection(err):
		p.fails = time.Time{}
		return false
	case isBusy(err):
		return false
	default:
		return lasts(&p.fails, now, maxFailing)
	}
}

// lasts says whether something that began at a time, or begins now, goes on for so long.
func lasts(begin *time.Time, now time.Time, span time.Duration) bool {
	if begin.IsZero() {
		*begin = now
	}
	return now.Sub(*begin) >= span
}

// isBusy tells an API server that cannot answer at the moment.
func isBusy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
