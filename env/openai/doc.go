// Package openai reads conversations in OpenAI's chat format as trajectories.
//
// Glossary. An *item* is one conversation of a file: its *messages* (system, developer, user,
// assistant, tool), the reward that its source gave, and whatever other fields stand beside them.
// Two layouts are read: {"messages": […], "reward": …} and tau-bench's {"traj": […], "reward": …,
// "task_id": …, "trial": …, "info": …}. A *task* is one group: the items of one task_id, or, without
// it, those whose messages before the first answer are the same; its *trials* are the group's
// trajectories, in the order of their trial numbers, else of the file.
//
// A *turn* is an assistant message, the *response*, with the messages since the previous one, its
// *context*. Messages after the last response belong to no turn: no policy answered them. A *call* is
// one entry of a response's tool_calls (or its function_call); the tool message that bears its id is
// its *answer*. Calls are recorded, never run: the file holds what they returned.
//
// Nobody knows the tokens that the policies behind a file read and wrote. Ours are those of the
// *rendering*: the conversation in the chat template of Qwen3 (without tool declarations and thinking), in
// which a response is what follows "<|im_start|>assistant\n", its end tag included. The messages
// themselves are kept as JSON beside the rows, so that nothing of them is lost.
package openai
