// Package deploy holds what runs Ropewalk on your own machines: systemd units, container files, a compose file, a Helm
// chart and the roles' S3 policies. docs/deploy.md explains them. The package's tests hold these files to the programs
// that read them.
package deploy
