package installation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// Revision is what one revision of a release was made from, as its record remembers it.
type Revision struct {
	Bundle bundle.Identity

	// Image is the reference of the bundle image as the catalog had it.
	Image string

	// Digest is what Image stood for when it was pulled. Empty when that is not
	// known, as in records of the reference implementation.
	Digest string

	// Inputs is a digest over the user's configuration of the bundle, and over
	// nothing that the controller itself is told: a restart with another issuer of
	// certificates upgrades nothing. Empty in records of the reference implementation,
	// which knows no such thing.
	Inputs string

	// OperatorCondition is the name of that of the bundle, in the namespace of the
	// installation; empty if there is none.
	OperatorCondition string

	// DependsOnCluster says that templates of a chart have looked at the cluster: they can come
	// to something else from the same bundle and inputs.
	DependsOnCluster bool

	// Selection is the way in which the Services of webhooks and APIs select pods.
	Selection bundle.Selection

	// IsEmpty is set if the revision has no objects. A chart may render none with the given values.
	IsEmpty bool
}

// IsMadeAs says that two revisions are of the same content, by its digest, and of the same inputs.
func (r Revision) IsMadeAs(other Revision) bool {
	return r.Digest != "" && r.Digest == other.Digest && r.Bundle == other.Bundle && r.Inputs == other.Inputs
}

// State is what the release records of an extension say.
type State struct {
	// Installed is the revision whose content is on the cluster; nil for none.
	Installed *Revision

	// Unfinished says that a revision after the installed one was begun and has
	// left the content somewhere between the two.
	Unfinished bool

	// HooksWait says that the hooks before the content of a revision after the installed one have not
	// all succeeded: nothing of that was written, and it does not count as unfinished.
	HooksWait bool

	// Installing says that the hooks after the content of the first revision have not all succeeded.
	Installing bool

	// HooksDue says that not all hooks have succeeded that come after the content of what is
	// installed. DeletionHooks says that there are some for its deletion.
	HooksDue, DeletionHooks bool
}

// Desired is a revision with the objects that it consists of.
type Desired struct {
	Revision

	// Objects are not changed. They need no marks of an owner.
	Objects []*unstructured.Unstructured

	// Hooks run before and after that. Tests are among them.
	Hooks []hook.Hook

	// HelmCRDs are the names of the CRDs in crds/ of an imported chart that are on the cluster. Helm does
	// not mark them as its own. The first upgrade adopts them. Only an import sets this field.
	HelmCRDs []string

	// Elsewhere maps each namespace of a chart, except the install namespace, to the origin of the first
	// object in it.
	Elsewhere map[string]bundle.Origin

	// HookDeadline is how long each of them may take.
	HookDeadline time.Duration

	// Preflight is what is to be let pass of what speaks against it.
	Preflight preflight.Policy

	// Annotations go into the release's chart metadata.
	Annotations map[string]string

	// Notes are lines for people about what was changed in the objects before.
	Notes []string

	// BeforeWrite is called after all checks and before the first write, of content
	// or of records. If it fails, nothing is written. It is confirmed if the API server has
	// said in the course of it that the extension is there and is to stay, which is not asked
	// again then. It may be nil.
	BeforeWrite func(context.Context) (confirmed bool, err error)
}
