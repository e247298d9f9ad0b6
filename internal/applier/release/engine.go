package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

// engine is Helm's client of the cluster, for one operation. Helm keeps the record and
// decides the order of things; [Content] reads and writes. What Helm asks about the cluster
// is answered from what the plan has read, so that no object is read twice.
//
// Helm's interface has no context, so the engine holds that of its operation.
type engine struct {
	ctx     context.Context //nolint:containedctx // see above
	content Content
}

var (
	_ kube.Interface              = (*engine)(nil)
	_ kube.InterfaceThreeWayMerge = (*engine)(nil)
)

// errNotAsked answers what only hooks and waits of Helm would ask. It runs no hooks: those of a chart are run
// by [Content.Write], a pass at a time.
var errNotAsked = errors.New("releases are not waited for, and Helm runs no hooks of them")

// IsReachable asks nothing: the cluster was read just before.
func (e *engine) IsReachable() error { return nil }

// Build gives the objects of the content. The manifest that Helm hands over is the
// text of the same objects.
func (e *engine) Build(io.Reader, bool) (kube.ResourceList, error) {
	objects := e.content.Objects()
	list := make(kube.ResourceList, 0, len(objects))
	for _, found := range objects {
		client, err := snapshot{live: found.Live}.client()
		if err != nil {
			return nil, err
		}
		list = append(list, &resource.Info{
			Client:    client,
			Mapping:   found.Mapping,
			Namespace: found.Key.Namespace,
			Name:      found.Key.Name,
			Object:    found.Object.DeepCopy(), // Helm stamps it
		})
	}
	return list, nil
}

// Create is the first install, when nothing of it is there yet.
func (e *engine) Create(list kube.ResourceList) (*kube.Result, error) {
	return &kube.Result{Created: list}, e.content.Write(e.ctx)
}

// Update is an upgrade. Creates, patches and deletes are told apart by [Content.Write].
func (e *engine) Update(_, target kube.ResourceList, _ bool) (*kube.Result, error) {
	return &kube.Result{Updated: target}, e.content.Write(e.ctx)
}

// UpdateThreeWayMerge is a first install that finds some of its objects.
func (e *engine) UpdateThreeWayMerge(_, target kube.ResourceList, _ bool) (*kube.Result, error) {
	return &kube.Result{Updated: target}, e.content.Write(e.ctx)
}

// Delete is for Helm's uninstall, which is not used: objects go with their
// owner.
func (e *engine) Delete(kube.ResourceList) (*kube.Result, []error) {
	return nil, []error{errNotAsked}
}

// Wait implements [kube.Interface].
func (e *engine) Wait(kube.ResourceList, time.Duration) error { return errNotAsked }

// WaitWithJobs implements [kube.Interface].
func (e *engine) WaitWithJobs(kube.ResourceList, time.Duration) error { return errNotAsked }

// WatchUntilReady implements [kube.Interface].
func (e *engine) WatchUntilReady(kube.ResourceList, time.Duration) error { return errNotAsked }

// WaitAndGetCompletedPodPhase implements [kube.Interface].
func (e *engine) WaitAndGetCompletedPodPhase(string, time.Duration) (corev1.PodPhase, error) {
	return "", errNotAsked
}

// snapshot answers every request for one object with what was read of it.
// live is nil for an object that does not exist.
type snapshot struct {
	live *unstructured.Unstructured
}

// client gives the snapshot the form in which Helm asks.
func (s snapshot) client() (resource.RESTClient, error) {
	config := &rest.Config{Host: "snapshot.invalid", ContentConfig: resource.UnstructuredPlusDefaultContentConfig()}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, &http.Client{Transport: s})
	if err != nil {
		return nil, fmt.Errorf("building the client of a snapshot: %w", err)
	}
	return client, nil
}

// RoundTrip implements [http.RoundTripper].
func (s snapshot) RoundTrip(req *http.Request) (*http.Response, error) {
	status, answer := http.StatusOK, any(s.live)
	if s.live == nil {
		missing := apierrors.NewNotFound(schema.GroupResource{}, path.Base(req.URL.Path))
		status, answer = http.StatusNotFound, missing.Status()
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encoding a snapshot: %w", err)
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": []string{runtime.ContentTypeJSON}},
		Body:       io.NopCloser(bytes.NewReader(body)),
		Request:    req,
	}, nil
}
