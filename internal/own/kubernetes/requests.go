package kubernetes

import (
	"cmp"
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// requests are how the objects of one kind are asked for.
type requests struct {
	resource string
	custom   bool // a kind that need not exist
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// clients are for the kinds that Kubernetes itself has, and for those with a definition. They share
// one connection.
type clients struct {
	coreV1, discoveryV1 *rest.RESTClient
	dynamic             *dynamic.DynamicClient
}

// newClients fails when the configuration contradicts itself.
func newClients(config *rest.Config, client *http.Client) (cs clients, _ error) {
	var errs [3]error
	cs.coreV1, errs[0] = typedClient(config, client, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	cs.discoveryV1, errs[1] = typedClient(config, client, "/apis", discoveryv1.SchemeGroupVersion, discoveryv1.AddToScheme)
	cs.dynamic, errs[2] = dynamic.NewForConfigAndClient(config, client)
	return cs, cmp.Or(errs[:]...)
}

// typedClient makes a client for one group of kinds. (The client of everything that
// Kubernetes has would be most of the program.)
func typedClient(
	config *rest.Config, client *http.Client, path string, gv schema.GroupVersion, add func(*runtime.Scheme) error,
) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = path, &gv
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return rest.RESTClientForConfigAndClient(config, client)
}

func typedRequests(c *rest.RESTClient, resource string, which fields.Selector) requests {
	get := func(o metav1.ListOptions) *rest.Request {
		o.FieldSelector = which.String()
		return c.Get().Resource(resource).VersionedParams(&o, metav1.ParameterCodec)
	}
	return requests{
		resource: resource,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return get(o).Do(ctx).Get()
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			return get(o).Watch(ctx)
		},
	}
}

func (cs clients) custom(gv schema.GroupVersion, resource, labels string) requests {
	c := cs.dynamic.Resource(gv.WithResource(resource))
	return requests{
		resource: resource,
		custom:   true,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = labels
			return c.List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = labels
			return c.Watch(ctx, o)
		},
	}
}
