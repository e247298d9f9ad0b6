package object

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// defaulted are the fields, by the structs that have them, in which an empty value is none:
// the API server, or a controller, puts another one in its place. Fields that are pointers
// are not among them: in these, empty values count.
var defaulted = map[reflect.Type][]string{
	reflect.TypeFor[corev1.Container]():                 {"imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"},
	reflect.TypeFor[corev1.ContainerPort]():             {"hostPort", "protocol"},
	reflect.TypeFor[corev1.EndpointPort]():              {"protocol"},
	reflect.TypeFor[corev1.HTTPGetAction]():             {"path", "scheme"},
	reflect.TypeFor[corev1.ImageVolumeSource]():         {"pullPolicy"},
	reflect.TypeFor[corev1.ISCSIVolumeSource]():         {"iscsiInterface"},
	reflect.TypeFor[corev1.ObjectFieldSelector]():       {"apiVersion"},
	reflect.TypeFor[corev1.PersistentVolumeSpec]():      {"persistentVolumeReclaimPolicy"},
	reflect.TypeFor[corev1.PersistentVolumeClaim]():     {"apiVersion", "kind"},
	reflect.TypeFor[corev1.PersistentVolumeClaimSpec](): {"volumeName"},
	reflect.TypeFor[corev1.PodSpec](): {
		"dnsPolicy", "nodeName", "restartPolicy", "schedulerName", "serviceAccount", "serviceAccountName", "tolerations",
	},
	reflect.TypeFor[corev1.Probe]():                     {"failureThreshold", "periodSeconds", "successThreshold", "timeoutSeconds"},
	reflect.TypeFor[corev1.RBDVolumeSource]():           {"keyring", "pool", "user"},
	reflect.TypeFor[corev1.ReplicationControllerSpec](): {"selector"},
	reflect.TypeFor[corev1.ScaleIOVolumeSource]():       {"fsType", "storageMode"},
	reflect.TypeFor[corev1.Secret]():                    {"type"},
	reflect.TypeFor[corev1.ServicePort]():               {"nodePort", "protocol", "targetPort"},
	reflect.TypeFor[corev1.ServiceSpec](): {
		"clusterIP", "clusterIPs", "externalTrafficPolicy", "healthCheckNodePort", "ipFamilies", "sessionAffinity", "type",
	},

	reflect.TypeFor[appsv1.DaemonSetUpdateStrategy]():                         {"type"},
	reflect.TypeFor[appsv1.DeploymentStrategy]():                              {"type"},
	reflect.TypeFor[appsv1.StatefulSetSpec]():                                 {"podManagementPolicy"},
	reflect.TypeFor[appsv1.StatefulSetUpdateStrategy]():                       {"type"},
	reflect.TypeFor[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy](): {"whenDeleted", "whenScaled"},

	reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerSpec](): {"metrics"},

	reflect.TypeFor[batchv1.CronJobSpec]():                            {"concurrencyPolicy"},
	reflect.TypeFor[batchv1.PodFailurePolicyOnPodConditionsPattern](): {"status"},

	reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionNames](): {"listKind", "singular"},
	reflect.TypeFor[certificatesv1.CertificateSigningRequestSpec]():  {"extra", "groups", "uid", "username"},
	reflect.TypeFor[flowcontrolv1.FlowSchemaSpec]():                  {"matchingPrecedence"},
	reflect.TypeFor[flowcontrolv1.QueuingConfiguration]():            {"handSize", "queueLengthLimit", "queues"},
	reflect.TypeFor[networkingv1.NetworkPolicySpec]():                {"policyTypes"},
	reflect.TypeFor[rbacv1.RoleRef]():                                {"apiGroup"},
	reflect.TypeFor[rbacv1.Subject]():                                {"apiGroup"},
	reflect.TypeFor[resourcev1.DeviceSubRequest]():                   {"allocationMode", "count"},
	reflect.TypeFor[resourcev1.ExactDeviceRequest]():                 {"allocationMode", "count"},
	reflect.TypeFor[storagev1.CSIDriverSpec]():                       {"volumeLifecycleModes"},
}
