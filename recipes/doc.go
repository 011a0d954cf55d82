// Package recipes reads the YAML that composes a run out of independent choices.
//
// Glossary. A *recipe* is one YAML document. Its *sections* (environment, policy, rollout …) each make one choice. A
// *field* is one entry of the table that the struct tags of Recipe and the slots define: documentation, default, limits
// and names. Defaults, validation, the published JSON schema (schema.json) and the reference page are all derived from
// that one table. A *path* names a field from the top (resample.roc.keep). An *override* is a path=value pair that
// replaces part of a recipe before validation. A *combination* is a rule over several fields. A recipe *extends* other
// recipes by naming them, and inherits every entry that it does not set itself. A *preset* applies a published method
// to a task. A *base* holds settings that presets share. A *problem* is one fault at one place. All problems of a
// recipe are reported together, and a recipe with a problem is never returned. A *resolved* recipe has a value for
// every field and one canonical JSON form. The digest of that form names the recipe.
package recipes
