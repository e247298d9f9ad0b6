package preflight

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// ApprovalError says that an upgrade waits for somebody who agrees to what it
// grants.
type ApprovalError struct {
	// Version is the one that is wanted.
	Version string

	// Gains are the rights that it gives to the operator and the installed one
	// does not; sorted. There are none only of an upgrade that is withheld in any case.
	Gains []permission.Gain
}

// Error is one short line: the first of what would be granted, how much more there
// is, and how to agree.
func (e *ApprovalError) Error() string {
	return fmt.Sprintf("the upgrade to version %q waits for approval, as the operator would gain: %s; "+
		"to agree, set spec.install.preflight.permissions.approvedVersion to %q",
		e.Version, e.Gained(), e.Version)
}

// Gained are the first of what would be granted, and how much more there is; one short line.
func (e *ApprovalError) Gained() string { return listed(e.Gains, permission.Gain.String) }

// Install is who is to install what.
type Install struct {
	// Mapper knows what the cluster serves.
	Mapper meta.RESTMapper

	Subject permission.Subject
	Content permission.Content

	// Version is that of the bundle.
	Version string
}

// Permissions checks that the ServiceAccount may do all that the content takes,
// and that more rights for the operator are agreed to. It is asked before any
// object is read. It fails with [*permission.MissingError] and, when nothing is
// missing, with [*ApprovalError]; other errors are those of [permission.NeedsOf] and
// [permission.Check]. Notes are what is worth telling.
func Permissions(ctx context.Context, clients permission.Clients, growth Growth, install Install) (notes []string, err error) {
	mapper := permission.Served(install.Mapper)
	needs, err := permission.NeedsOf(mapper, install.Subject, install.Content)
	if err != nil {
		return nil, err
	}
	if err := permission.Check(ctx, clients, needs); err != nil {
		return nil, err
	}
	if len(install.Content.OwnBefore()) == 0 && !growth.Withheld {
		return nil, nil
	}
	gains, err := permission.Growth(mapper, install.Subject, install.Content)
	if err != nil {
		return nil, err
	}
	if growth.Waits(install.Version, len(gains) > 0) {
		return nil, &ApprovalError{Version: install.Version, Gains: gains}
	}
	return permissionNotes(gains, moreThanBefore(mapper, install, needs)), nil
}

// moreThanBefore are the rights that the ServiceAccount needs for the content and
// did not need for the content before.
func moreThanBefore(mapper permission.Mapper, install Install, needs permission.Needs) []permission.Rule {
	before, err := permission.NeedsOf(mapper, install.Subject, permission.Content{Wanted: install.Content.OwnBefore(), Hooks: install.Content.HooksBefore})
	if err != nil {
		return nil // kinds that the cluster no longer serves need no rights any more
	}
	return permission.Delta(before, needs)
}

func permissionNotes(gains []permission.Gain, more []permission.Rule) []string {
	var notes []string
	if len(gains) > 0 {
		notes = append(notes, "the operator gains "+listed(gains, permission.Gain.String))
	}
	if len(more) > 0 {
		notes = append(notes, "the ServiceAccount needs more than before: "+listed(more, permission.Rule.Text))
	}
	return notes
}

// maxListed bounds a list that stands in one line, so that two of them fit into an
// event.
const maxListed = 400

func listed[T any](items []T, text func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return excerpt.Of(texts, maxListed)
}
