// Package openai reads conversations in OpenAI's chat format as trajectories.
//
// Glossary. An *item* is one conversation of a file: its *messages* (system, developer, user, assistant, tool), the
// reward from its source, and any other fields of the same object. Two layouts are supported: {"messages": […],
// "reward": …} and tau-bench's {"traj": […], "reward": …, "task_id": …, "trial": …, "info": …}. A *preference pair* is
// two items, with the rewards 1 and 0. A *task* is one group:
// the items of one task_id. Without a task_id, it is the items with the same messages before the first answer. Its
// *trials* are the group's trajectories, in the order of their trial numbers, or else in the order of the file.
//
// A *turn* is an assistant message, the *response*, with the messages since the previous response, its *context*.
// Messages after the last response belong to no turn, because no policy answered them. A *call* is one entry of a
// response's tool_calls (or its function_call). The tool message with the call's id is the *answer*. Calls are recorded
// and never run: the file holds their results.
//
// The tokens that the original policies read and wrote are unknown. The rows hold the tokens of the *rendering*: the
// conversation in the chat template of Qwen3, without tool declarations and thinking. In the rendering, a response is
// the text after "<|im_start|>assistant\n", including its end tag. The rows also keep the messages themselves as JSON,
// so that nothing is lost.
package openai
