package health

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// DeploymentKind is the kind of Deployments.
var DeploymentKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}

// podKinds contains the kinds whose objects are pods, or create them.
var podKinds = map[schema.GroupKind]judge{
	DeploymentKind: judgeWith(OfDeployment),
	{Group: appsv1.GroupName, Kind: "StatefulSet"}: judgeWith(OfStatefulSet),
	{Group: appsv1.GroupName, Kind: "DaemonSet"}:   judgeWith(OfDaemonSet),
	{Group: appsv1.GroupName, Kind: "ReplicaSet"}:  judgeWith(OfReplicaSet),
	{Group: batchv1.GroupName, Kind: "Job"}:        judgeWith(OfJob),
	{Kind: "ReplicationController"}:                judgeWith(OfReplicationController),
	{Kind: "Pod"}:                                  judgeWith(OfPod),
}

// otherKinds contains the other built-in kinds whose status counts. By the rules of kstatus, the status of the
// remaining built-in kinds does not show a problem.
var otherKinds = map[schema.GroupKind]judge{
	object.APIServiceKind:           judgeWith(OfAPIService),
	{Kind: "PersistentVolumeClaim"}: judgeWith(OfClaim),
}

// judgeOf returns the function that reads objects of a kind; false if their status does not count.
func judgeOf(kind schema.GroupKind) (judge, bool) {
	if found, ok := podKinds[kind]; ok {
		return found, true
	}
	if found, ok := otherKinds[kind]; ok {
		return found, true
	}
	if kind == object.DefinitionKind {
		return judgeWithConditions(ofDefinition), true
	}
	return judgeWithConditions(ofCustomResource), !scheme.Scheme.IsGroupRegistered(kind.Group)
}

// judge contains the two functions that read the workload of an object of one kind: from the object, and from its JSON.
type judge struct {
	ofObject func(object.Key, *unstructured.Unstructured) Workload
	ofJSON   func([]byte) (metadata *metav1.ObjectMeta, workloadAt func(object.Key) Workload, err error)
}

func judgeWith[T any](of func(object.Key, *T) Workload) judge {
	return judge{
		ofObject: func(key object.Key, live *unstructured.Unstructured) Workload {
			read := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, read); err != nil {
				return Workload{Key: key, Available: metav1.ConditionUnknown, Reason: "its status cannot be read"}
			}
			return of(key, read)
		},
		ofJSON: func(data []byte) (*metav1.ObjectMeta, func(object.Key) Workload, error) {
			read := new(T)
			err := json.Unmarshal(data, read)
			metadata := any(read).(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) //nolint:errcheck // true of all built-in types
			return metadata, func(key object.Key) Workload { return of(key, read) }, err
		},
	}
}

// HasStatus reports whether the status of the objects of a kind counts, which includes all custom resources.
func HasStatus(kind schema.GroupKind) bool {
	_, has := judgeOf(kind)
	return has
}

// HasConditions reports whether the conditions of the objects of a kind are all that counts: custom resources, and
// CustomResourceDefinitions. A watch of them may report the metadata alone; the status is read after an event then.
func HasConditions(kind schema.GroupKind) bool {
	return HasStatus(kind) && !RunsPods(kind) && !isOther(kind)
}

func isOther(kind schema.GroupKind) bool {
	_, is := otherKinds[kind]
	return is
}

// RunsPods reports whether the objects of a kind are pods, or create them.
func RunsPods(kind schema.GroupKind) bool {
	_, runs := podKinds[kind]
	return runs
}

// IsKindWithStatus is [HasStatus] for a kind as text, such as "Deployment.apps".
func IsKindWithStatus(kind string) bool { return HasStatus(schema.ParseGroupKind(kind)) }

// Decode reads the JSON of an object whose kind has a status: its metadata, and its workload under a key.
func Decode(kind schema.GroupKind, data []byte) (metadata *metav1.ObjectMeta, workloadAt func(object.Key) Workload, err error) {
	read, _ := judgeOf(kind)
	return read.ofJSON(data)
}
