package cli

import "testing"

func TestNamesOfExtensions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string // empty for none
	}{
		{[]string{"x"}, "x"},
		{[]string{"x.y"}, "x.y"},
		{[]string{"clusterextension", "x"}, "x"},
		{[]string{"clusterextension/x"}, "x"},
		{[]string{"clusterextensions/x"}, "x"},
		{[]string{"cext", "x"}, "x"},
		{[]string{"ClusterExtension/x"}, "x"},
		{[]string{"clusterextension.olm.operatorframework.io/x"}, "x"},
		{[]string{"clusterextensions.v1.olm.operatorframework.io", "x"}, "x"},
		{[]string{"clusterextension"}, ""},
		{[]string{"clusterextension/"}, ""},
		{[]string{"clusterextension", ""}, ""},
		{[]string{"clusterextension/x/y"}, ""},
		{[]string{"clusterextension/x", "y"}, ""},
		{[]string{"pod/x"}, ""},
		{[]string{"pod", "x"}, ""},
		{[]string{"x", "y"}, ""},
	} {
		got, err := ExtensionName(test.args)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %q, %v, want %q", test.args, got, err, test.want)
		}
	}
}
