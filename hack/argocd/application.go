package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

const (
	// cascade is the finalizer that has what an Application has made removed with it.
	cascade = "resources-finalizer.argocd.argoproj.io"
	// tracking is the annotation that says which Application an object belongs to.
	tracking = "argocd.argoproj.io/tracking-id"

	// compareOptions is the annotation with the way that an Application is compared.
	compareOptions = "argocd.argoproj.io/compare-options"
)

// application is an Application with what of its spec matters here.
type application struct {
	object *unstructured.Unstructured
	Spec   spec `json:"spec"`
}

type spec struct {
	Source struct {
		Path string `json:"path"`
	} `json:"source"`
	Destination struct {
		Namespace string `json:"namespace"`
	} `json:"destination"`
	SyncPolicy struct {
		Automated *struct {
			Prune    bool `json:"prune"`
			SelfHeal bool `json:"selfHeal"`
		} `json:"automated"`
		SyncOptions []string `json:"syncOptions"`
	} `json:"syncPolicy"`
}

func parseApplication(object *unstructured.Unstructured) (*application, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("reading Application %q: %w", object.GetName(), err)
	}
	app := &application{object: object}
	if err := json.Unmarshal(text, app); err != nil {
		return nil, fmt.Errorf("reading Application %q: %w", object.GetName(), err)
	}
	return app, nil
}

func (a *application) name() string { return a.object.GetName() }

func (a *application) isDeleted() bool { return a.object.GetDeletionTimestamp() != nil }

func (a *application) cascades() bool { return slices.Contains(a.object.GetFinalizers(), cascade) }

// hasOption says whether an option of syncs is set for all objects.
func (a *application) hasOption(option string) bool {
	return slices.Contains(a.Spec.SyncPolicy.SyncOptions, option)
}

func (a *application) comparesServerSide() bool {
	return strings.Contains(a.object.GetAnnotations()[compareOptions], "ServerSideDiff=true")
}

// approvesDeletion says whether a person has confirmed what is to be confirmed.
func (a *application) approvesDeletion() bool {
	_, ok := a.object.GetAnnotations()[common.AnnotationDeletionApproved]
	return ok
}

// prunes says whether objects are deleted that are not wanted.
func (a *application) prunes() bool {
	return a.isDeleted() || a.Spec.SyncPolicy.Automated != nil && a.Spec.SyncPolicy.Automated.Prune
}

// trackingID is the one of an object, in the form of Argo CD.
func (a *application) trackingID(obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%s:%s/%s:%s/%s", a.name(), obj.GroupVersionKind().Group, obj.GetKind(), obj.GetNamespace(), obj.GetName())
}
