//go:build linux

package chart

import (
	"slices"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// decoder refuses fields that Kubernetes does not know, and those that are there twice.
var decoder = func() runtime.Decoder {
	for _, add := range []func(*runtime.Scheme) error{monitoring.AddToScheme, gateway.Install, certmanager.AddToScheme} {
		utilruntime.Must(add(scheme.Scheme))
	}
	return serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// A release is what the chart makes of some values.
type release struct {
	values  map[string]any
	objects []runtime.Object
}

func newRelease(t *testing.T, values map[string]any) *release {
	t.Helper()
	return releaseOf(t, values, rendered(t, values))
}

// releaseOf decodes what was rendered.
func releaseOf(t *testing.T, values map[string]any, files map[string]string) *release {
	t.Helper()
	r := &release{values: values}
	for _, name := range sorted(files) {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for text := range strings.SplitSeq(files[name], "\n---\n") {
			if strings.TrimSpace(text) == "" {
				continue
			}
			object, _, err := decoder.Decode([]byte(text), nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			r.objects = append(r.objects, object)
		}
	}
	return r
}

// all returns the objects of one type.
func all[T runtime.Object](r *release) (found []T) {
	for _, o := range r.objects {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// named returns the object of a type with a name, nil if there is none.
func named[T interface {
	runtime.Object
	metav1.Object
}](r *release, name string) (none T) {
	for _, o := range all[T](r) {
		if o.GetName() == name {
			return o
		}
	}
	return none
}

func (r *release) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := all[*appsv1.Deployment](r)
	if len(d) != 1 {
		t.Fatalf("%d Deployments, want one", len(d))
	}
	return d[0]
}

// A pod is a template of pods, and who makes them.
type pod struct {
	of       string
	labels   map[string]string
	selector *metav1.LabelSelector
	spec     *corev1.PodSpec
}

func (r *release) pods() (pods []pod) {
	for _, d := range all[*appsv1.Deployment](r) {
		pods = append(pods, pod{"Deployment " + d.Name, d.Spec.Template.Labels, d.Spec.Selector, &d.Spec.Template.Spec})
	}
	for _, s := range all[*appsv1.StatefulSet](r) {
		pods = append(pods, pod{"StatefulSet " + s.Name, s.Spec.Template.Labels, s.Spec.Selector, &s.Spec.Template.Spec})
	}
	for _, p := range all[*corev1.Pod](r) {
		pods = append(pods, pod{"Pod " + p.Name, p.Labels, nil, &p.Spec})
	}
	return pods
}

// kinds returns what a release has, sorted.
func (r *release) kinds() (kinds []string) {
	for _, o := range r.objects {
		kinds = append(kinds, o.GetObjectKind().GroupVersionKind().Kind+" "+o.(metav1.Object).GetName())
	}
	slices.Sort(kinds)
	return kinds
}

// releases returns one for each file below ci.
func releases(t *testing.T) map[string]*release {
	t.Helper()
	all := make(map[string]*release)
	for name, path := range valuesFiles(t) {
		all[name] = newRelease(t, readValues(t, path))
	}
	return all
}

func (r *release) services() []*corev1.Service { return all[*corev1.Service](r) }
func (r *release) policies() []*networkingv1.NetworkPolicy {
	return all[*networkingv1.NetworkPolicy](r)
}
func (r *release) budgets() []*policyv1.PodDisruptionBudget {
	return all[*policyv1.PodDisruptionBudget](r)
}
func (r *release) monitors() []*monitoring.ServiceMonitor { return all[*monitoring.ServiceMonitor](r) }
func sorted[V any](m map[string]V) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
