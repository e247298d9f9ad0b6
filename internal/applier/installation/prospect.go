package installation

import (
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// Prospect is what a revision would come to if it was applied.
type Prospect struct {
	// Trials are those of all objects, sorted, also of those that stay as they are.
	Trials []object.Trial

	// Missing are the rights that the ServiceAccount lacks; Gains, which are only known if
	// there are none of them, those that the operator would get.
	Missing []permission.Rule
	Gains   []permission.Gain

	// Conflicts are the groups of API services that others serve, which is not to be seen of
	// any object that is wanted; sorted.
	Conflicts []object.Conflict

	// Verdict is what the definitions would break.
	Verdict preflight.Verdict
}
