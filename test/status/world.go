package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
)

const (
	recordOwner         = "operator-controller"
	recordDeployed      = "deployed"
	deploymentKind      = "Deployment"
	catalogContentRoute = "/api/v1/all"
)

// Deployed are the records of an extension that are labelled as deployed. All
// revisions of all resources of a cluster are numbered by one counter, so the
// records can be read as they were when an object of another kind was written. The
// error says which record is not whole.
func Deployed(ctx context.Context, reader client.Reader, extension, revision string) ([]*environment.Release, error) {
	indexes, err := recordSecrets(ctx, reader, revision, client.MatchingLabels{
		"type": "index", "name": extension, "status": recordDeployed,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the records of %s: %w", extension, err)
	}
	var deployed []*environment.Release
	for i := range indexes {
		record, err := readRecord(ctx, reader, revision, &indexes[i])
		if err != nil {
			return nil, &brokenRecordError{indexes[i].Name, err}
		}
		deployed = append(deployed, record)
	}
	return deployed, nil
}

// recordSecrets lists Secrets as they were at a revision.
func recordSecrets(ctx context.Context, reader client.Reader, revision string, labels client.MatchingLabels) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	err := reader.List(ctx, list, at(revision), client.InNamespace(environment.SystemNamespace), labels,
		client.MatchingLabels{"owner": recordOwner})
	return list.Items, err
}

// brokenRecordError says that a record is there and is not whole.
type brokenRecordError struct {
	name  string
	cause error
}

func (e *brokenRecordError) Error() string { return fmt.Sprintf("record %s: %v", e.name, e.cause) }

// at reads the past.
func at(revision string) *client.ListOptions {
	return &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: revision, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}}
}

func readRecord(ctx context.Context, reader client.Reader, revision string, index *corev1.Secret) (*environment.Release, error) {
	secrets, err := recordSecrets(ctx, reader, revision, client.MatchingLabels{"type": "chunk", "key": index.Name})
	if err != nil {
		return nil, err
	}
	chunks := map[string][]byte{}
	for i := range secrets {
		chunks[secrets[i].Name] = secrets[i].Data["chunk"]
	}
	release, _, err := environment.ReadRelease(index, chunks)
	if err == nil && release.Info.Status != recordDeployed {
		err = fmt.Errorf("it is %s inside and %s outside", release.Info.Status, recordDeployed)
	}
	return release, err
}

// World tells what there was on a cluster.
type World struct {
	Reader client.Reader
}

// OfExtension gives the facts about a captured extension at the moment of the
// capture, of which a version of its bundle is wanted; none if empty.
func (w World) OfExtension(ctx context.Context, capture Capture, wanted string) (Facts, error) {
	name, revision := capture.Object.GetName(), capture.Object.GetResourceVersion()
	records, err := Deployed(ctx, w.Reader, name, revision)
	if broken, ok := errors.AsType[*brokenRecordError](err); ok {
		return Facts{Content: []string{broken.Error()}}, nil
	}
	if err != nil {
		return Facts{}, err
	}
	var facts Facts
	switch {
	case len(records) == 0:
		facts.Content = append(facts.Content, "no record is deployed")
	case len(records) > 1:
		facts.Content = append(facts.Content, fmt.Sprintf("%d records are deployed", len(records)))
	case wanted == "":
		facts.Content = append(facts.Content, fmt.Sprintf("%s is installed, and is not what is wanted", records[0].BundleVersion()))
	case records[0].BundleVersion() != wanted:
		facts.Content = append(facts.Content, fmt.Sprintf("%s is installed, %s is wanted", records[0].BundleVersion(), wanted))
	}
	if len(records) == 0 {
		return facts, nil
	}
	err = w.compare(ctx, &facts, capture.Object, records[len(records)-1])
	return facts, err
}

// compare adds how the objects that there were differ from those of a record.
func (w World) compare(ctx context.Context, facts *Facts, owner *unstructured.Unstructured, record *environment.Release) error {
	wanted, err := objectsIn(record.Manifest)
	if err != nil {
		return err
	}
	for gvk, names := range wanted {
		found, err := w.labelled(ctx, gvk, owner.GetName(), owner.GetResourceVersion())
		if err != nil {
			return err
		}
		for _, name := range names {
			object, ok := found[name]
			what := gvk.Kind + " " + name
			delete(found, name)
			switch {
			case !ok && strings.HasSuffix(gvk.Kind, "WebhookConfiguration"):
				facts.Workloads = append(facts.Workloads, what+" waits for a pod")
			case !ok:
				facts.Content = append(facts.Content, what+" is missing")
			case !ownedBy(object, owner):
				facts.Content = append(facts.Content, what+" has another owner")
			}
			if gvk.Kind == deploymentKind {
				if err := addWorkload(facts, what, object); err != nil {
					return err
				}
			}
		}
		for name := range found {
			facts.Content = append(facts.Content, gvk.Kind+" "+name+" is left over")
		}
	}
	slices.Sort(facts.Content)
	slices.Sort(facts.Workloads)
	slices.Sort(facts.Rollouts)
	return nil
}

// objectsIn are the names of the objects in a manifest, by their kinds.
func objectsIn(manifest string) (map[schema.GroupVersionKind][]string, error) {
	objects := map[schema.GroupVersionKind][]string{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		if len(object.Object) > 0 {
			gvk := object.GroupVersionKind()
			objects[gvk] = append(objects[gvk], object.GetName())
		}
	}
}

// labelled are the objects of a kind that carry the label of an extension, by
// name. There are none of a kind that is no longer served.
func (w World) labelled(ctx context.Context, gvk schema.GroupVersionKind, extension, revision string) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := w.Reader.List(ctx, list, at(revision), client.MatchingLabels{environment.OwnerLabel: extension})
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("listing %s of %s: %w", gvk.Kind, extension, err)
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		found[list.Items[i].GetName()] = &list.Items[i]
	}
	return found, nil
}

func ownedBy(object, owner *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		return reference.UID == owner.GetUID()
	})
}

// addWorkload adds what is amiss with a Deployment; nil if it does not exist.
func addWorkload(facts *Facts, what string, object *unstructured.Unstructured) error {
	if object == nil {
		facts.Workloads = append(facts.Workloads, what+" does not exist")
		return nil
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	if !slices.ContainsFunc(deployment.Status.Conditions, func(condition appsv1.DeploymentCondition) bool {
		return condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue
	}) {
		facts.Workloads = append(facts.Workloads, what+" is not available")
	}
	if reason := rollingOut(deployment); reason != "" {
		facts.Rollouts = append(facts.Rollouts, what+" "+reason)
	}
	return nil
}

// rollingOut says what kubectl rollout status would wait for.
func rollingOut(deployment *appsv1.Deployment) string {
	wanted := int32(1)
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}
	state := deployment.Status
	switch {
	case state.ObservedGeneration < deployment.Generation:
		return "was not looked at by its controller"
	case state.UpdatedReplicas < wanted:
		return fmt.Sprintf("has %d of %d pods of its revision", state.UpdatedReplicas, wanted)
	case state.Replicas > state.UpdatedReplicas:
		return fmt.Sprintf("has %d pods of another revision", state.Replicas-state.UpdatedReplicas)
	case state.AvailableReplicas < wanted:
		return fmt.Sprintf("has %d of %d pods available", state.AvailableReplicas, wanted)
	}
	return ""
}

// Nothing is wanted of a catalog that was withdrawn.
const Nothing = "nothing"

// OfCatalog gives the facts about a captured catalog, which ought to serve content
// with a text in it. What it serves now is asked: that is nowhere to be read later.
func (w World) OfCatalog(ctx context.Context, capture Capture, wanted string) (Facts, error) {
	base, _, _ := unstructured.NestedString(capture.Object.Object, "status", "urls", "base")
	switch {
	case base == "" && wanted == Nothing:
		return Facts{}, nil
	case base == "":
		return Facts{Content: []string{"nothing is served"}}, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+catalogContentRoute, http.NoBody)
	if err != nil {
		return Facts{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Facts{}, fmt.Errorf("asking a catalog: %w", err)
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return Facts{}, fmt.Errorf("asking a catalog: %w", err)
	}
	switch {
	case response.StatusCode != http.StatusOK:
		return Facts{Content: []string{"the catalog server answers " + response.Status}}, nil
	case !bytes.Contains(content, []byte(wanted)):
		return Facts{Content: []string{"what is served is not what is wanted"}}, nil
	}
	return Facts{}, nil
}
