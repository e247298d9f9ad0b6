package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImagePolicy says who has to have signed the images of catalogs and bundles whose names begin
// in a certain way. Of all policies, that with the longest prefix of a name decides about it; an
// image that none is about needs no signature.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ipol,categories=olm
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Match",type=string,JSONPath=`.spec.match`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ImagePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is demanded.
	//
	// +required
	Spec ImagePolicySpec `json:"spec"`

	// status says whether the policy can be used as it is. It is written by the controller only.
	//
	// +optional
	Status ImagePolicyStatus `json:"status,omitempty"`
}

// ImagePolicyList is a list of ImagePolicies.
//
// +kubebuilder:object:root=true
type ImagePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ImagePolicies.
	Items []ImagePolicy `json:"items"`
}

// ImagePolicySpec is what an [ImagePolicy] demands.
type ImagePolicySpec struct {
	// match says which images the policy is about.
	//
	// Example: [{prefix: "quay.io/acme"}]
	//
	// +required
	// +listType=map
	// +listMapKey=prefix
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Match []ImageMatch `json:"match"`

	// authorities are those whose signature is accepted; one of them is enough.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Authorities []Authority `json:"authorities"`

	// attestations are what has to be stated of the image besides, each in an attestation that
	// one of the authorities has signed. All of them are demanded.
	//
	// Example: [{predicateType: "https://slsa.dev/provenance/v1"}]
	//
	// +optional
	// +listType=map
	// +listMapKey=predicateType
	// +kubebuilder:validation:MaxItems=16
	Attestations []Attestation `json:"attestations,omitempty"`

	// mode says what becomes of an image that the policy does not accept. Enforce, the default,
	// refuses it: what is there already stays. Warn uses it, and says so in conditions and events.
	//
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`
}

// Mode says what becomes of an image that a policy does not accept.
//
// +kubebuilder:validation:Enum=Enforce;Warn
type Mode string

const (
	// ModeEnforce refuses the image.
	ModeEnforce Mode = "Enforce"

	// ModeWarn uses it, and says so.
	ModeWarn Mode = "Warn"
)

// ImageMatch names images.
type ImageMatch struct {
	// prefix is how the names of the images begin: a registry, or a registry and as much of
	// a path as is wanted, in whole elements. Of "quay.io/acme", quay.io/acme/catalog is one and
	// quay.io/acme-labs/catalog is not. It counts for the name that a catalog or a bundle has,
	// wherever a mirror has it. The empty prefix is about all images.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(localhost|[a-zA-Z0-9.-]+[.][a-zA-Z0-9.-]+|[a-zA-Z0-9.-]+:[0-9]{1,5})(/[a-z0-9._-]+)*/?$')",message="prefix must be a registry, such as quay.io or registry:5000, or a registry and the beginning of a path without a tag, such as quay.io/acme"
	Prefix string `json:"prefix"`
}

// Authority is somebody whose signature is accepted.
//
// +kubebuilder:validation:XValidation:rule="[has(self.key), has(self.certificate), has(self.keyless)].filter(x, x).size() == 1",message="exactly one of key, certificate and keyless is required"
type Authority struct {
	// name is what the authority is called in conditions and events.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// key accepts what has been signed with a key.
	//
	// +optional
	Key *KeyAuthority `json:"key,omitempty"`

	// certificate accepts what has been signed with the key of a certificate that an authority of
	// one's own has issued. The certificate has to be valid when the image is judged.
	//
	// +optional
	Certificate *CertificateAuthority `json:"certificate,omitempty"`

	// keyless accepts what a workload or a person has signed without a key of their own: by what
	// an identity provider vouches for.
	//
	// +optional
	Keyless *KeylessAuthority `json:"keyless,omitempty"`
}

// KeyAuthority is a key, or one of several.
type KeyAuthority struct {
	// secretRef has public keys in PEM, of which any is accepted; the key in the Secret is
	// cosign.pub if none is named.
	//
	// +required
	SecretRef SecretReference `json:"secretRef"`
}

// CertificateAuthority is an authority that issues certificates for signing code.
type CertificateAuthority struct {
	// secretRef has the certificates of the authority in PEM, those that lie between it and the
	// signer included unless they come with signatures; the key in the Secret is ca.crt if none
	// is named.
	//
	// +required
	SecretRef SecretReference `json:"secretRef"`

	// subjects are those of which the signer has to be one, by the name in the certificate: its
	// first URI or, without any, its first e-mail address. A host is no such name.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Subjects []Subject `json:"subjects"`
}

// Subject is the name in the certificate of a signer: among its subject alternative names the first
// URI or, without any, the first e-mail address.
//
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="exactly one of subject and subjectRegExp is required"
type Subject struct {
	// subject is the name.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject,omitempty"`

	// subjectRegExp is a regular expression (RE2) that is looked for in the name: with ^ it
	// is looked for at the beginning only, with $ at the end.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// KeylessAuthority is an instance of Sigstore, and who has signed by it.
type KeylessAuthority struct {
	// identities are those of which the signer has to be one.
	//
	// Example: [{issuer: "https://token.actions.githubusercontent.com", subjectRegExp: '^https://github\.com/acme/[^@]+@refs/tags/v'}]
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Identities []Identity `json:"identities"`

	// trustedRoot has the certificates and keys of the instance. All that is named there is
	// demanded: an entry in a log of signatures if there are such logs, and a certificate that
	// is in a log of certificates if there are those.
	//
	// +required
	TrustedRoot TrustedRoot `json:"trustedRoot"`
}

// TrustedRoot has the certificates and keys of an instance of Sigstore.
type TrustedRoot struct {
	// secretRef has them in the form of Sigstore's trusted_root.json, which is the key in the
	// Secret if none is named.
	//
	// +required
	SecretRef SecretReference `json:"secretRef"`
}

// Identity is a signer as an identity provider knows it.
//
// +kubebuilder:validation:XValidation:rule="has(self.issuer) != has(self.issuerRegExp)",message="exactly one of issuer and issuerRegExp is required"
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="exactly one of subject and subjectRegExp is required"
type Identity struct {
	// issuer is the URL of the identity provider.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer,omitempty"`

	// issuerRegExp is a regular expression (RE2) that is looked for in that URL: with ^
	// it is looked for at the beginning only, with $ at the end.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	IssuerRegExp string `json:"issuerRegExp,omitempty"`

	// subject is the signer: a workflow by its URL, a person by an e-mail address.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject,omitempty"`

	// subjectRegExp is a regular expression (RE2) that is looked for in the subject: with
	// ^ it is looked for at the beginning only, with $ at the end.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// Attestation is a statement that is demanded.
type Attestation struct {
	// predicateType is what kind of statement it is, by its URI. What it says is not looked at.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	PredicateType string `json:"predicateType"`
}

// SecretReference is a key of a Secret in the namespace of the controller.
type SecretReference struct {
	// name is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a Secret"
	Name string `json:"name"`

	// key is the key in the Secret.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ImagePolicyStatus says whether a policy can be used.
type ImagePolicyStatus struct {
	// conditions are those of the policy. Ready says whether all its authorities can be used.
	// If one cannot, what only it has signed is not accepted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TypeReady is the condition of an [ImagePolicy] that says whether all its authorities can be
// used.
const TypeReady = "Ready"

// Reasons of [TypeReady].
const (
	// ReasonUsable: all of them can be.
	ReasonUsable = "Usable"

	// ReasonUnusable: one cannot be, which the message names.
	ReasonUnusable = "UnusableAuthority"
)
