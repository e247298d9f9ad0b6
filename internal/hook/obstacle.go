package hook

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationRun is on an object of a hook. Its value identifies the run for which the object was created, so that an
// object of an earlier operation does not count for a later one.
const AnnotationRun = "olm.operatorframework.io/hook-run"

// Obstacle describes why an object blocks a hook of the same name. Retries do not change that.
type Obstacle string

// The obstacles. The empty Obstacle is none.
const (
	// IsContent: the repair of the installed version would overwrite the object of the hook.
	IsContent Obstacle = "an object of the installed version has its name, and the hook would overwrite it"

	// IsOfEarlierRun: the policies of the hook do not delete what an earlier run has left.
	IsOfEarlierRun Obstacle = "an object of an earlier run exists, and its delete policy does not contain before-hook-creation: delete it"
)

// ObstacleIn returns why an object of the extension that exists, and that is not of the same run, blocks the hook. It
// is empty if the object is deleted for the hook. isContent is true if the installed version has the object. The
// annotations do not show this, because the object may have been a hook of an earlier version. An object that contains data
// is never deleted for a hook, and blocks none unless it is content.
func (h Hook) ObstacleIn(live metav1.Object, isContent, containsData bool) Obstacle {
	switch {
	case live.GetDeletionTimestamp() != nil:
		return ""
	case containsData && !isContent:
		return ""
	case isContent, live.GetAnnotations()[AnnotationRun] == "":
		return IsContent
	case !h.HasPolicy(BeforeCreation):
		return IsOfEarlierRun
	}
	return ""
}
