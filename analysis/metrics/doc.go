// Package metrics computes a run's metrics from its record, and writes them as TensorBoard event files.
//
// Glossary. A *metric* is a number for each step, such as train/reward. metrics.json declares all of them once: a name,
// what it means, and the SQL by which it follows from a *source*, which is a table of the record or a query of one.
// The Python package has a copy of the file and writes the same numbers for W&B and MLflow. A *point* is a metric's
// value at a step; step 0 is before the first step. A metric without data at a step has no point there. The *clock*
// gives each step the time at which its last measured activity ended, because the viewers show times.
package metrics
