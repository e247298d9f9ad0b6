package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/overview"
)

// stallPatience is how long an extension may be stalled before it is given up: the controller
// may come to see a moment later what was written with it.
const stallPatience = 15 * time.Second

// defaultTimeout is how long an extension may take to be ready. A large one on a slow cluster
// takes some minutes.
const defaultTimeout = 15 * time.Minute

// errLate ends the wait for an extension that takes too long.
var errLate = errors.New("it is not ready in time")

// errStalled ends the wait for an extension that is stalled.
var errStalled = errors.New("a person has to act")

// progress tells people how an extension gets on.
type progress struct {
	to io.Writer

	// version is the one that is to be installed.
	version string

	last overview.Row
	stop *time.Timer // while it is stalled
}

// wait waits until the extension is ready, for ever if the timeout is zero. The error says why
// it will not be, or is not.
func (p *progress) wait(ctx context.Context, extensions *cli.Extensions, name string, timeout time.Duration) error {
	asked := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if timeout > 0 {
		defer time.AfterFunc(timeout, func() { cancel(errLate) }).Stop()
	}
	err := extensions.Follow(ctx, name, func(ext *ocv1.ClusterExtension, deleted bool) (bool, error) {
		return p.next(overview.RowOf(ext), deleted, func() { cancel(errStalled) })
	})
	if p.stop != nil {
		p.stop.Stop()
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("clusterextension/%s is not ready, and %w: %s", name, errStalled, p.last.Message)
	}
	if asked.Err() != nil {
		return fmt.Errorf("interrupted: the controller goes on with clusterextension/%s", name)
	}
	if errors.Is(context.Cause(ctx), errLate) {
		return fmt.Errorf("clusterextension/%s is not ready after %s, and the controller goes on: %s", name, timeout, cmp.Or(p.last.Message, "its status says nothing yet, is the controller running?"))
	}
	return err
}

// next takes in how the extension is now. Expire is called when it is stalled for too long.
func (p *progress) next(row overview.Row, deleted bool, expire func()) (done bool, err error) {
	if row.Health != p.last.Health || row.Message != p.last.Message {
		fmt.Fprintf(p.to, "%s: %s\n", row.Health, row.Message)
	}
	p.last = row
	switch {
	case row.Health != overview.Stalled && p.stop != nil:
		p.stop.Stop()
		p.stop = nil
	case row.Health == overview.Stalled && p.stop == nil:
		p.stop = time.AfterFunc(stallPatience, expire)
	}
	switch {
	case deleted, row.Health == overview.Terminating:
		return true, fmt.Errorf("clusterextension/%s is deleted by somebody", row.Name)
	case row.Health == overview.Suspended:
		return true, fmt.Errorf("clusterextension/%s is suspended: nothing happens until `kubectl extension resume %s`", row.Name, row.Name)
	case row.Health != overview.Ready || row.Installed == "":
		return false, nil
	case row.Pending == overview.ForApproval:
		return true, fmt.Errorf("clusterextension/%s stays at version %s, and %w: version %s waits until `kubectl extension approve %s`", row.Name, row.Installed, errStalled, row.Available, row.Name)
	case row.Pending != "":
		return false, nil // the operator may let it go
	case row.Installed != p.version: // catalogs have changed, or another spec was written meanwhile
		return true, fmt.Errorf("clusterextension/%s is ready at version %s, and not at %s, which was chosen before: kubectl extension explain %s says why", row.Name, row.Installed, p.version, row.Name)
	}
	return true, nil
}
