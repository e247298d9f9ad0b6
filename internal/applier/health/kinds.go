package health

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// DeploymentKind is the kind of Deployments.
var DeploymentKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}

// judges contains the kinds whose status counts, with the functions that read it.
var judges = map[schema.GroupKind]judge{
	DeploymentKind:        judgeWith(OfDeployment),
	object.APIServiceKind: judgeWith(OfAPIService),
	{Group: appsv1.GroupName, Kind: "StatefulSet"}: judgeWith(OfStatefulSet),
	{Group: appsv1.GroupName, Kind: "DaemonSet"}:   judgeWith(OfDaemonSet),
	{Group: appsv1.GroupName, Kind: "ReplicaSet"}:  judgeWith(OfReplicaSet),
	{Group: batchv1.GroupName, Kind: "Job"}:        judgeWith(OfJob),
	{Kind: "ReplicationController"}:                judgeWith(OfReplicationController),
	{Kind: "Pod"}:                                  judgeWith(OfPod),
}

// judge reads the objects of one kind.
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

// HasStatus reports whether the status of the objects of a kind counts.
func HasStatus(kind schema.GroupKind) bool {
	_, has := judges[kind]
	return has
}

// RunsPods reports whether the objects of a kind are pods, or create them.
func RunsPods(kind schema.GroupKind) bool { return HasStatus(kind) && kind != object.APIServiceKind }

// IsKindWithStatus is [HasStatus] for a kind as text, such as "Deployment.apps".
func IsKindWithStatus(kind string) bool { return HasStatus(schema.ParseGroupKind(kind)) }

// Decode reads the JSON of an object whose kind has a status: its metadata, and its workload under a key.
func Decode(kind schema.GroupKind, data []byte) (metadata *metav1.ObjectMeta, workloadAt func(object.Key) Workload, err error) {
	return judges[kind].ofJSON(data)
}
