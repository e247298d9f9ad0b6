package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// maxObjects is how many objects a tree has.
	maxObjects = 10_000

	// maxNameBytes is how long the name of an object is, in bytes: more than any that
	// Kubernetes takes for most kinds.
	maxNameBytes = 300

	// maxUnknown is how many lines a tree has about what is not known.
	maxUnknown = 100

	// maxUnknownBytes is how long one of these is, in bytes.
	maxUnknownBytes = 1_000
)

// What there is to say of an object, besides Ready, NotReady, Reconciling, Stalled,
// Terminating and Unknown.
const (
	// Present is one of a kind of which nothing is known but that it is there.
	Present Health = "Present"

	// Missing is one that is not there, and should be.
	Missing Health = "Missing"

	// Done is a Job that has run and that the cluster has deleted for that.
	Done Health = "Done"

	// Foreign is one that does not belong to the extension.
	Foreign Health = "Foreign"
)

// Found is what was found of an object.
type Found struct {
	Key object.Key

	// Live is nil if there is no such object, or with Err, which says why it is not known.
	Live *unstructured.Unstructured
	Err  error

	// Ran is true for a Job that was created. It is done if it does not exist.
	Ran bool

	// IsOfHook is true if a hook of a chart created the object.
	IsOfHook bool

	// Foreign says that the extension is no owner of it.
	Foreign bool
}

// Object is an object of an extension. Texts are printable, in one line.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Health    Health `json:"health"`
	Message   string `json:"message,omitempty"`
}

// Tree is an extension with its objects.
type Tree struct {
	SchemaVersion int      `json:"schemaVersion"`
	Extension     Row      `json:"extension"`
	Objects       []Object `json:"objects"`

	// More is how many objects there are besides.
	More int `json:"more,omitempty"`

	// Unknown is what could not be found out, a line each.
	Unknown []string `json:"unknown,omitempty"`
}

// ReadsStatus reports whether the health of the objects of a kind depends on their status.
func ReadsStatus(kind schema.GroupKind) bool { return health.HasStatus(kind) }

// ReadsSpec reports whether the health of the objects of a kind depends on their spec.
func ReadsSpec(kind schema.GroupKind) bool { return !health.HasConditions(kind) }

// MakeTree makes a tree at a time: objects that are in no namespace first, then by namespace, kind and
// name.
func MakeTree(extension Row, found []Found, unknown []string, now time.Time) Tree {
	tree := Tree{SchemaVersion: SchemaVersion, Extension: extension, Objects: make([]Object, 0, len(found))}
	for _, one := range found {
		tree.Objects = append(tree.Objects, objectOf(one, now))
	}
	slices.SortFunc(tree.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
	})
	if len(tree.Objects) > maxObjects {
		tree.Objects, tree.More = tree.Objects[:maxObjects], len(found)-maxObjects
	}
	for _, text := range unknown[:min(len(unknown), maxUnknown)] {
		tree.Unknown = append(tree.Unknown, excerpt.Line(text, maxUnknownBytes))
	}
	return tree
}

func objectOf(found Found, now time.Time) Object {
	shown := Object{
		Group: line(found.Key.Group), Kind: line(found.Key.Kind), Namespace: line(found.Key.Namespace), Name: excerpt.Line(found.Key.Name, maxNameBytes),
	}
	message := ""
	switch {
	case found.Err != nil:
		shown.Health, message = Unknown, found.Err.Error()
	case found.Live == nil && found.Ran:
		shown.Health, message = Done, "it has run, and the cluster has deleted it for its ttlSecondsAfterFinished"
	case found.Live == nil:
		shown.Health = Missing
	case found.Foreign:
		shown.Health, message = Foreign, "it does not belong to this extension"
	default:
		workload, known := health.Of(map[object.Key]*unstructured.Unstructured{found.Key: found.Live})[found.Key]
		started, _ := health.Starting([]health.Workload{workload}, now)
		workload = started[0]
		shown.Health, message = healthOfWorkload(workload, known, found.Live), workload.Reason
	}
	if found.IsOfHook {
		message = strings.TrimSuffix("of a hook; "+message, "; ")
	}
	shown.Message = excerpt.Line(message, maxMessageBytes)
	return shown
}

func healthOfWorkload(workload health.Workload, known bool, live *unstructured.Unstructured) Health {
	switch {
	case !known:
		return Present
	case live.GetDeletionTimestamp() != nil:
		return Terminating
	case workload.Stuck:
		return Stalled
	case workload.RollingOut:
		return Reconciling
	case workload.Available == metav1.ConditionTrue:
		return Ready
	case workload.Available == metav1.ConditionFalse:
		return NotReady
	}
	return Unknown
}
