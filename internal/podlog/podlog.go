// Package podlog reads what an object has logged that runs once: a Pod, or a Job.
//
//	object            -> its pod
//	such a pod        -> its containers, and the one that has failed
//	container, bounds -> the last lines of it
//
// Nothing is followed, and nothing is read that is not asked for.
package podlog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/objectlist"
)

// maxPods is how many pods of a Job are looked at for the newest one: at their metadata, as each can
// be large.
const maxPods = 50

const (
	// maxPodBytes is how large a pod that is read may be, and maxPodsBytes the metadata of all that
	// are looked at.
	maxPodBytes  = 2 << 20
	maxPodsBytes = 4 << 20
)

// metadataAlone asks for a list without what its objects are.
const metadataAlone = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// Of is the pod of an object: a Pod itself, or the newest one of a Job; nil if there is none. Of other
// kinds there is none either. It takes the right to list pods. It fails with an error of package
// objectlist if there is more than is read.
func Of(ctx context.Context, client rest.Interface, live *unstructured.Unstructured) (*corev1.Pod, error) {
	switch live.GroupVersionKind().GroupKind() {
	case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, pod); err != nil {
			return nil, fmt.Errorf("reading Pod %q: %w", live.GetName(), err)
		}
		return pod, nil
	case batchv1.SchemeGroupVersion.WithKind("Job").GroupKind():
		return newestOf(ctx, client, live)
	}
	return nil, nil
}

func newestOf(ctx context.Context, client rest.Interface, job *unstructured.Unstructured) (*corev1.Pod, error) {
	options := metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(job.GetUID()), Limit: maxPods}
	var newest metav1.ObjectMeta
	err := list(ctx, client, job.GetNamespace(), options, metadataAlone, maxPodsBytes, func(found metav1.PartialObjectMetadata) {
		if newest.Name == "" || newest.CreationTimestamp.Before(&found.CreationTimestamp) {
			newest.Name, newest.CreationTimestamp = found.Name, found.CreationTimestamp
		}
	})
	if err != nil || newest.Name == "" {
		return nil, err
	}
	// To get it would take another right.
	options.FieldSelector, options.Limit = fields.OneTermEqualSelector(metav1.ObjectNameField, newest.Name).String(), 1
	var pod *corev1.Pod
	err = list(ctx, client, job.GetNamespace(), options, runtime.ContentTypeJSON, maxPodBytes, func(found corev1.Pod) {
		if found.Name == newest.Name {
			pod = &found
		}
	})
	return pod, err
}

// list calls take with each pod of a page, of which so many bytes are read at most.
func list[T any](ctx context.Context, client rest.Interface, namespace string, options metav1.ListOptions, accept string, left int64, take func(T)) error {
	body, err := client.Get().Namespace(namespace).Resource("pods").
		VersionedParams(&options, scheme.ParameterCodec).
		SetHeader("Accept", accept).
		Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = objectlist.Read(body, maxPodBytes, &left, func(item []byte) error {
		var one T
		if err := json.Unmarshal(item, &one); err != nil {
			return err
		}
		take(one)
		return nil
	})
	return err
}

// Containers are those of a pod, by name, in the order in which they start.
func Containers(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	return names
}

// Failed is the container of a pod that has ended with an error, or else its first one; empty if
// it has none.
func Failed(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return status.Name
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

// Tail is what a container has logged last: so many lines, and no more than so many bytes of them. It
// may be any bytes.
func Tail(ctx context.Context, pods corev1client.PodInterface, pod, container string, lines, most int64) ([]byte, error) {
	stream, err := pods.GetLogs(pod, &corev1.PodLogOptions{Container: container, TailLines: &lines, LimitBytes: &most}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return io.ReadAll(io.LimitReader(stream, most)) // the kubelet is to keep to it, and may not
}
