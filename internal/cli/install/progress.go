package install

import (
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

// errStalled ends the wait for an extension that is stalled.
var errStalled = errors.New("a person has to act")

// progress tells people how an extension gets on.
type progress struct {
	to   io.Writer
	last overview.Row
	stop *time.Timer // while it is stalled
}

// wait waits until the extension is ready. The error says why it will not be.
func (p *progress) wait(ctx context.Context, extensions *cli.Extensions, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := extensions.Follow(ctx, name, func(ext *ocv1.ClusterExtension, deleted bool) (bool, error) {
		return p.next(overview.RowOf(ext), deleted, func() { cancel(errStalled) })
	})
	if p.stop != nil {
		p.stop.Stop()
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("clusterextension/%s is not ready, and %w: %s", name, errStalled, p.last.Message)
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
	}
	return row.Health == overview.Ready && row.Installed != "", nil
}
