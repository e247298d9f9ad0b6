// Package field_test installs inputs that broke systems like this one on the clusters of their users, each under the
// number of the report, and prints the number, the verdict and the time.
package field_test
