package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Paths of the webhooks in the bundles that have some.
const (
	pathValidate = "/validate-widget"
	pathMutate   = "/mutate-widget"
	pathConvert  = "/convert-widget"
)

// refusedSize is one that the validating webhook does not let through, though the
// schema does.
const refusedSize = 9

// mutatedLabel has the version of the operator that the mutating webhook has seen a
// Widget with.
const mutatedLabel = "mutated-by"

// maxBody bounds a conversion, in bytes: as much as the API server takes of one object,
// some times over.
const maxBody = 16 << 20

func serveWebhooks(server webhook.Server, s settings) {
	server.Register(pathValidate, &webhook.Admission{Handler: admission.HandlerFunc(validate)})
	server.Register(pathMutate, &webhook.Admission{Handler: mutate(s.version)})
	server.Register(pathConvert, http.HandlerFunc(convert))
}

func validate(_ context.Context, request admission.Request) admission.Response {
	widget := &unstructured.Unstructured{}
	if err := widget.UnmarshalJSON(request.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if size, _, _ := unstructured.NestedInt64(widget.Object, "spec", "size"); size == refusedSize {
		return admission.Denied(fmt.Sprintf("a Widget of size %d does not stand", refusedSize))
	}
	return admission.Allowed("")
}

func mutate(version string) admission.HandlerFunc {
	return func(_ context.Context, request admission.Request) admission.Response {
		widget := &unstructured.Unstructured{}
		if err := widget.UnmarshalJSON(request.Object.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		labels := widget.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[mutatedLabel] = version
		widget.SetLabels(labels)
		changed, err := widget.MarshalJSON()
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, changed)
	}
}

// convert answers a review of conversions.
func convert(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(review)
	if err != nil || review.Request == nil {
		http.Error(w, "this is no review of a conversion", http.StatusBadRequest)
		return
	}
	review.Response = convertAll(review.Request)
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	answer, err := json.Marshal(review)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// A client that hangs up wants no answer.
	_, _ = w.Write(answer)
}

func convertAll(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range request.Objects {
		widget := &unstructured.Unstructured{}
		if err := widget.UnmarshalJSON(object.Raw); err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			response.ConvertedObjects = nil
			return response
		}
		convertWidget(widget, request.DesiredAPIVersion)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: widget})
	}
	return response
}

// convertWidget has spec.size of v1alpha1 as spec.units of v1beta1, and the other way
// round.
func convertWidget(widget *unstructured.Unstructured, to string) {
	from, into := "units", "size"
	if widget.GroupVersionKind().Version == "v1alpha1" {
		from, into = into, from
	}
	if value, ok, _ := unstructured.NestedFieldNoCopy(widget.Object, "spec", from); ok && widget.GetAPIVersion() != to {
		unstructured.RemoveNestedField(widget.Object, "spec", from)
		_ = unstructured.SetNestedField(widget.Object, value, "spec", into) // spec is an object: it had the other
	}
	widget.SetAPIVersion(to)
}
