package apiservice

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Endpoints are those of a Service whose pods nobody runs: the API server of the cluster does
// not ask a Service that has none. The name of the port is that of the Service.
func Endpoints(service types.NamespacedName, port string, number int32) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-of-tests",
			Labels: map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "tests"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		// Nobody connects to it.
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:     []discoveryv1.EndpointPort{{Name: &port, Port: &number, Protocol: new(corev1.ProtocolTCP)}},
	}
}
