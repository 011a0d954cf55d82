// Package recipes reads the YAML that composes a run out of independent choices.
//
// Glossary. A *recipe* is one YAML document; its *sections* (environment, policy, rollout …)
// each make one choice. A *field* is one entry of the table that the struct tags of Recipe
// spell out: its documentation, default, limits and names. Defaults, validation, the published
// JSON schema (schema.json) and the reference page are all read from that one table. A *path*
// names a field from the top (resample.roc.keep). An *override* is a path=value pair that
// replaces part of a recipe before it is validated. A *combination* is a rule over several
// fields. A *problem* is one fault at one place; all problems of a recipe are reported at once,
// and a recipe with a problem is never returned. A *resolved* recipe holds every field, has
// one canonical JSON form, and is named by that form's digest.
package recipes
