package resolve

import (
	"fmt"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Kind of failure.
type Kind string

const (
	// NoBundle: no bundle satisfies the request.
	NoBundle Kind = "NoBundle"

	// Ambiguous: catalogs of the same priority offer different bundles.
	Ambiguous Kind = "Ambiguous"

	// Unreadable: a catalog that might change the answer cannot be read.
	Unreadable Kind = "Unreadable"

	// Unchecked: it cannot be told whether the cluster has what the chosen
	// bundle requires.
	Unchecked Kind = "Unchecked"

	// BadVersion: the chosen bundle, and every other one that qualifies, has
	// no valid version.
	BadVersion Kind = "BadVersion"

	// InvalidInstalled: the version of the installed bundle is not valid, so
	// that its upgrades cannot be known.
	InvalidInstalled Kind = "InvalidInstalled"
)

// Error is the only error of [Resolve].
type Error struct {
	Kind Kind

	// Package, Range, Channels and Installed as in the request.
	Package   string
	Range     Range
	Channels  []string
	Installed *bundle.Identity

	// Catalogs, sorted: those that have the package (NoBundle), those with a
	// candidate, whatever their priority (Ambiguous), those that stand in the
	// way (Unreadable). Otherwise the one catalog of Bundle, or none.
	Catalogs []string

	// Priority of the catalogs that disagree (Ambiguous).
	Priority int32

	// Bundle that would have been the answer; zero for NoBundle, Ambiguous and
	// InvalidInstalled, and for Unreadable if there is none.
	Bundle bundle.Identity

	// Reachable are the versions that the requested channels declare upgrades
	// of the installed bundle, highest first, whatever Range says (NoBundle).
	Reachable []string

	// LeftOut are the bundles of the package; see [Resolution.LeftOut]. Empty
	// for InvalidInstalled.
	LeftOut []LeftOut

	// Awaited is the one of LeftOut that would have been the answer if the
	// cluster had what it requires (NoBundle); nil if there is none.
	Awaited *LeftOut

	// Err is the cause, if there is one: of Unreadable the error of the first of
	// Catalogs, of the others what is wrong.
	Err error

	// evaluation has what the message does not tell (NoBundle).
	evaluation *evaluation
}

func (e *Error) Unwrap() error { return e.Err }

// Error is the message of the reference implementation, word for word: scripts
// compare it. [Error.Explanation] says more.
func (e *Error) Error() string {
	switch e.Kind {
	case Unreadable:
		first := strings.Join(e.Catalogs[:min(1, len(e.Catalogs))], "")
		return fmt.Sprintf("error walking catalogs: error getting package %q from catalog %q: %v", e.Package, first, e.Err)
	case InvalidInstalled:
		return fmt.Sprintf("error walking catalogs: error finding upgrade edges: failed to get version and release of installed bundle: %v", e.Err)
	case BadVersion:
		return fmt.Sprintf("error getting resolved bundle version for bundle %q: %v", e.Bundle.Name, e.Err)
	case Unchecked:
		return fmt.Sprintf("validating bundle %q: the requirements of bundle %q cannot be checked: %v", e.Bundle.Name, e.Bundle.Name, e.Err)
	case NoBundle, Ambiguous:
	}
	return e.notOne()
}

func (e *Error) notOne() string {
	var text strings.Builder
	if e.Installed != nil {
		fmt.Fprintf(&text, "error upgrading from currently installed version %q: ", e.Installed.Version)
	}
	if e.Kind == Ambiguous {
		fmt.Fprintf(&text, "found bundles for package %q", e.Package)
	} else {
		fmt.Fprintf(&text, "no bundles found for package %q", e.Package)
	}
	if wanted := e.Range.String(); wanted != "" {
		fmt.Fprintf(&text, " matching version %q", wanted)
	}
	if len(e.Channels) > 0 {
		fmt.Fprintf(&text, " in channels %v", e.Channels)
	}
	if e.Kind == Ambiguous {
		fmt.Fprintf(&text, " in multiple catalogs with the same priority %v", e.Catalogs)
	}
	return text.String()
}
