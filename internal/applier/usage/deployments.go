package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/objectlist"
)

// Bounds of a Deployment, and of all Deployments of a namespace. [MaxListed] bounds their number.
const (
	maxDeploymentBytes  = 2 << 20
	maxDeploymentsBytes = 32 << 20
)

// AppsClient returns a client for [Deployments].
func AppsClient(config *rest.Config, through *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &appsv1.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientForConfigAndClient(config, through)
}

// Deployments returns the first [MaxListed] Deployments of a namespace. It sends one request, and ignores all others. If
// they are too large to be read, it returns those before, with [objectlist.ErrLargeObject] or [objectlist.ErrManyBytes].
func Deployments(ctx context.Context, client rest.Interface, namespace string) ([]bundle.Workload, error) {
	body, err := client.Get().Namespace(namespace).Resource("deployments").
		VersionedParams(&metav1.ListOptions{Limit: MaxListed}, scheme.ParameterCodec).
		SetHeader("Accept", "application/json").
		Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the deployments in namespace %q: %w", namespace, err)
	}
	defer body.Close()
	var found []bundle.Workload
	left := int64(maxDeploymentsBytes)
	_, err = objectlist.Read(body, maxDeploymentBytes, &left, func(item []byte) error {
		var one struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Template struct {
					Metadata struct {
						Labels map[string]string `json:"labels"`
					} `json:"metadata"`
				} `json:"template"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(item, &one); err != nil {
			return err
		}
		found = append(found, bundle.Workload{Name: one.Metadata.Name, Labels: one.Metadata.Labels, PodLabels: one.Spec.Template.Metadata.Labels})
		return nil
	})
	if err != nil {
		return found, fmt.Errorf("listing the deployments in namespace %q: %w", namespace, err)
	}
	return found, nil
}
