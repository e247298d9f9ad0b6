package webhook

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// Refused is the size of a thing that the validating webhook does not let
	// through.
	Refused = 13

	// MutatedLabel is on every thing that the mutating webhook has seen.
	MutatedLabel = "mutated"
)

func validate(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	thing := &unstructured.Unstructured{}
	if err := thing.UnmarshalJSON(request.Object.Raw); err != nil {
		return refuse(err.Error())
	}
	if size, _, _ := unstructured.NestedInt64(thing.Object, "spec", "size"); size == Refused {
		return refuse("of all sizes, this one is not allowed")
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func refuse(message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
	}}
}

func mutate(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	kind := admissionv1.PatchTypeJSONPatch
	patch := `[{"op": "add", "path": "/metadata/labels", "value": {"` + MutatedLabel + `": "yes"}}]`
	return &admissionv1.AdmissionResponse{Allowed: true, PatchType: &kind, Patch: []byte(patch)}
}

// convertAll moves spec.size of v1 to spec.count of v2, and back.
func convertAll(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range request.Objects {
		thing := &unstructured.Unstructured{}
		if err := thing.UnmarshalJSON(object.Raw); err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		from, to := "size", "count"
		if thing.GroupVersionKind().Version == "v2" {
			from, to = to, from
		}
		if value, ok, _ := unstructured.NestedFieldNoCopy(thing.Object, "spec", from); ok {
			unstructured.RemoveNestedField(thing.Object, "spec", from)
			_ = unstructured.SetNestedField(thing.Object, value, "spec", to)
		}
		thing.SetAPIVersion(request.DesiredAPIVersion)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: thing})
	}
	return response
}
