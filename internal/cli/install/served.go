package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// catalogInterval is the time between two checks of a catalog that is not served yet.
const catalogInterval = 2 * time.Second

// whenServed wraps try, which plans an extension: the result calls try again every interval while
// the choice needs a catalog that the controller still pulls, as it does right after the catalog
// was created. It reports each such catalog once to told. It gives up if the catalog is stalled, or
// if ctx is done.
func whenServed(ctx context.Context, told io.Writer, interval time.Duration, try func(*ocv1.ClusterExtension) (inspect.Plan, error)) func(*ocv1.ClusterExtension) (inspect.Plan, error) {
	reported := map[string]bool{}
	return func(ext *ocv1.ClusterExtension) (inspect.Plan, error) {
		for {
			plan, err := try(ext)
			missing, isMissing := errors.AsType[*controller.NotServedError](plan.Err)
			switch {
			case !isMissing:
				return plan, err
			case missing.Stalled != "":
				return plan, fmt.Errorf("catalog %q is not served: %s. See `kubectl describe clustercatalog %s`", missing.Catalog, cli.Printable(missing.Stalled), missing.Catalog)
			case !reported[missing.Catalog]:
				reported[missing.Catalog] = true
				fmt.Fprintf(told, "Waiting: the controller pulls catalog %q\n", missing.Catalog)
			}
			select {
			case <-ctx.Done():
				return plan, fmt.Errorf("%w. Is the controller running? See `kubectl describe clustercatalog %s`", err, missing.Catalog)
			case <-time.After(interval):
			}
		}
	}
}
