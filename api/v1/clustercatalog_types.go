package v1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterCatalog makes the packages of a catalog available to the cluster.
// Its content is pulled from an image and served over HTTP inside the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ccat,categories=olm
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="LastUnpacked",type=date,JSONPath=`.status.lastUnpacked`
// +kubebuilder:printcolumn:name="Serving",type=string,JSONPath=`.status.conditions[?(@.type=='Serving')].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=='Progressing')].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.conditions[?(@.type=='Degraded')].reason`
// +kubebuilder:printcolumn:name="Packages",type=integer,JSONPath=`.status.packages`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterCatalog struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	//
	// +required
	Spec ClusterCatalogSpec `json:"spec"`

	// status is what the controller found and did. It is written by the
	// controller only.
	//
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ClusterCatalogStatus `json:"status,omitempty"`
}

// ServedAt is the URL below which the content of a catalog can be had; empty if it cannot.
func (c *ClusterCatalog) ServedAt() string {
	isServed := c.Spec.AvailabilityMode != AvailabilityModeUnavailable && meta.IsStatusConditionTrue(c.Status.Conditions, TypeServing)
	if !isServed || c.Status.URLs == nil {
		return ""
	}
	return c.Status.URLs.Base
}

// ClusterCatalogList is a list of ClusterCatalogs.
//
// +kubebuilder:object:root=true
type ClusterCatalogList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterCatalogs.
	Items []ClusterCatalog `json:"items"`
}

// AvailabilityMode says whether a catalog takes part in resolution.
//
// +kubebuilder:validation:Enum=Available;Unavailable
type AvailabilityMode string

const (
	// AvailabilityModeAvailable serves the catalog.
	AvailabilityModeAvailable AvailabilityMode = "Available"

	// AvailabilityModeUnavailable withdraws the catalog and deletes its
	// content, as if it did not exist.
	AvailabilityModeUnavailable AvailabilityMode = "Unavailable"
)

// ClusterCatalogSpec is the wanted state of a ClusterCatalog.
type ClusterCatalogSpec struct {
	// source says where the content comes from.
	//
	// Example: {type: Image, image: {ref: "quay.io/operatorhubio/catalog:latest", pollIntervalMinutes: 10}}
	//
	// +required
	Source CatalogSource `json:"source"`

	// priority decides between catalogs that offer the same package: the
	// higher number wins, whatever the versions. Between equal priorities
	// nothing is chosen, and the extension says so.
	//
	// Any 32-bit number. Left out, 0.
	//
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// availabilityMode withdraws the catalog without deleting the object.
	//
	// Available serves the content. Unavailable stops serving it and deletes
	// it, and extensions resolve as if the catalog did not exist; what is
	// installed stays. Left out, Available.
	//
	// +kubebuilder:default=Available
	// +optional
	AvailabilityMode AvailabilityMode `json:"availabilityMode,omitempty"`
}

// SourceType is the kind of source a catalog comes from.
//
// +kubebuilder:validation:Enum=Image
type SourceType string

// SourceTypeImage takes the content of a catalog from a container image.
const SourceTypeImage SourceType = "Image"

// CatalogSource is a union: type says which one of the other fields is set.
//
// +union
// +kubebuilder:validation:XValidation:rule="(self.type == 'Image') == has(self.image)",message="image is required when source type is Image, and forbidden otherwise"
type CatalogSource struct {
	// type is the kind of source. The only value is Image, which requires the
	// field image.
	//
	// +unionDiscriminator
	// +required
	Type SourceType `json:"type"`

	// image is the container image that holds the catalog. Required when type
	// is Image, forbidden otherwise.
	//
	// +optional
	Image *ImageSource `json:"image,omitempty"`
}

// ImageSource is a container image that holds a catalog.
//
// +kubebuilder:validation:XValidation:rule="!self.ref.matches('@.*:') || !has(self.pollIntervalMinutes)",message="cannot specify pollIntervalMinutes while using digest-based image"
type ImageSource struct {
	// ref is the image: registry, repository, and a tag or a digest. The
	// registry has to be spelled out.
	//
	// At most 1000 characters.
	// Examples: quay.io/operatorhubio/catalog:latest,
	// my-registry.example:8080/catalogs/prod@sha256:200d4ddb2a73594b91358fe6397424e975205bfbe44614f5846033cad64b3f05
	//
	// +kubebuilder:validation:MaxLength=1000
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[A-Za-z0-9]+\\b")`,message="must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) separated by the \".\" character."
	// +kubebuilder:validation:XValidation:rule=`self.matches("/[a-z0-9]")`,message="a valid name is required. valid names must contain lowercase alphanumeric characters separated only by the \".\", \"_\", \"__\", \"-\" characters."
	// +kubebuilder:validation:XValidation:rule=`self.contains(":")`,message="must end with a digest or a tag"
	// +kubebuilder:validation:XValidation:rule=`self.matches("@.*:") || self.substring(self.lastIndexOf(":") + 1).size() <= 127 || !self.contains(":")`,message="tag is invalid. the tag must not be more than 127 characters"
	// +kubebuilder:validation:XValidation:rule=`self.matches("@.*:") || self.matches(":\\w[\\w.-]*$") || !self.contains(":")`,message="tag is invalid. valid tags must begin with a word character (alphanumeric + \"_\") followed by word characters or \".\", and \"-\" characters"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.matches("@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:")`,message="digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha character followed by alphanumeric characters and may contain the \"-\", \"_\", \"+\", and \".\" characters."
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.substring(self.indexOf(":") + 1).size() >= 32`,message="digest is not valid. the encoded string must be at least 32 characters"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.matches(":[0-9A-Fa-f]*$")`,message="digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)"
	// +required
	Ref string `json:"ref"`

	// pollIntervalMinutes is how often, in minutes, the tag is looked up again
	// to see whether it points at another image. At least 1; forbidden with a
	// digest, which cannot change. Left out, the tag is looked up once.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	PollIntervalMinutes *int `json:"pollIntervalMinutes,omitempty"`

	// pullSecrets are Secrets with credentials to pull this image with, in the
	// namespace of the controller and of type kubernetes.io/dockerconfigjson or
	// kubernetes.io/dockercfg. They are used for this catalog alone, and win over
	// those of the controller; of several that have some for a registry, the last
	// wins. While one of them cannot be used, Progressing says why, nothing is
	// pulled, and what is served stays served. An addition to the API of the
	// reference implementation.
	//
	// At most 8.
	// Example: [{name: "team-registry"}]
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	PullSecrets []PullSecret `json:"pullSecrets,omitempty"`
}

// PullSecret names a Secret with credentials for registries.
type PullSecret struct {
	// name is that of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")`,message="must be the name of a Secret: lower case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
}

// ClusterCatalogStatus is what the controller found and did.
type ClusterCatalogStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// While it is lower than metadata.generation, a change of spec has not been
	// looked at yet; -1 means that nothing has.
	//
	// +kubebuilder:validation:Minimum=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say how things stand:
	//   - Serving is True while content can be fetched from urls.base
	//     (Available). It is False when spec.availabilityMode withdraws it
	//     (UserSpecifiedUnavailable) or the object is being deleted
	//     (Unavailable). It is absent until content is served for the first time.
	//   - Progressing is True at rest (Succeeded) and after an error that is
	//     tried again (Retrying). It is False when a person has to act (Blocked).
	//   - Ready is True when all is as wanted: the content of the source in spec is
	//     served (Succeeded), also while nothing newer can be had of it (Retrying),
	//     or withdrawn as spec says (UserSpecifiedUnavailable). It is Unknown while
	//     the first content is on its way (Pulling), False otherwise (Retrying,
	//     Blocked, Unavailable). Its message says why.
	//   - Reconciling is True while work goes on (Pulling, Retrying), and absent
	//     otherwise.
	//   - Stalled is True when a person has to act (Blocked), or when every try of
	//     two minutes or more has ended in the same way (Retrying); the tries go on
	//     then. It is absent otherwise.
	//   - Verified is True when the ImagePolicies accept the image of what is served
	//     (Signed), False when one does not (Unsigned if it only warns, Refused
	//     otherwise: what is served stays), Unknown while its signatures cannot be
	//     read (VerificationFailed). It is absent if no policy is about the image.
	//   - Degraded is True when the image of the source in spec has content that cannot
	//     be used (ContentInvalid), or when every try of two minutes or more to find
	//     newer content has failed (SourceUnavailable). The last good content stays
	//     served. It is absent otherwise.
	//
	// An error leaves Serving as it is: the last good content stays served.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resolvedSource is the source of the content that is served.
	//
	// +optional
	ResolvedSource *ResolvedCatalogSource `json:"resolvedSource,omitempty"`

	// urls is where the content is served. Absent while it is not.
	//
	// +optional
	URLs *ClusterCatalogURLs `json:"urls,omitempty"`

	// lastUnpacked is when the served content was taken out of its image.
	//
	// +optional
	LastUnpacked *metav1.Time `json:"lastUnpacked,omitempty"`

	// packages is how many packages the served content has. Absent while nothing is
	// served, or that is not known. An addition to the API of the reference
	// implementation.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Packages int32 `json:"packages,omitempty"`
}

// ResolvedCatalogSource is a union: type says which one of the other fields is
// set.
//
// +union
// +kubebuilder:validation:XValidation:rule="(self.type == 'Image') == has(self.image)",message="image is required when source type is Image, and forbidden otherwise"
type ResolvedCatalogSource struct {
	// type is the kind of source. The only value is Image.
	//
	// +unionDiscriminator
	// +required
	Type SourceType `json:"type"`

	// image is the image that holds the served content.
	//
	// +required
	Image *ResolvedImageSource `json:"image"`
}

// ResolvedImageSource is a container image pinned by digest.
type ResolvedImageSource struct {
	// ref is the image with its digest; it can be pulled to see exactly the
	// content that is served.
	//
	// +kubebuilder:validation:MaxLength=1000
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[A-Za-z0-9]+\\b")`,message="must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) separated by the \".\" character."
	// +kubebuilder:validation:XValidation:rule=`self.matches("/[a-z0-9]")`,message="a valid name is required. valid names must contain lowercase alphanumeric characters separated only by the \".\", \"_\", \"__\", \"-\" characters."
	// +kubebuilder:validation:XValidation:rule=`self.matches("@.*:")`,message="must end with a digest"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.matches("@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:")`,message="digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha character followed by alphanumeric characters and may contain the \"-\", \"_\", \"+\", and \".\" characters."
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.substring(self.indexOf(":") + 1).size() >= 32`,message="digest is not valid. the encoded string must be at least 32 characters"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("@.*:") || self.matches(":[0-9A-Fa-f]*$")`,message="digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)"
	// +required
	Ref string `json:"ref"`
}

// ClusterCatalogURLs is where the content of a catalog is served.
type ClusterCatalogURLs struct {
	// base is the URL, reachable inside the cluster, below which the content
	// is served; base + /api/v1/all is all of it.
	//
	// +kubebuilder:validation:MaxLength=525
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="must be a valid URL"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getScheme() in ['http', 'https']",message="scheme must be either http or https"
	// +required
	Base string `json:"base"`
}
