"""What the wrapper uses of WebShop's release, with a shop that sells one thing for each goal."""

DEFAULT_FILE_PATH = "items.json"


class SimServer:
    def __init__(self, base_url, file_path, filter_goals=None, limit_goals=-1, num_products=None, human_goals=0):
        assert file_path == DEFAULT_FILE_PATH and num_products == 1000 and not human_goals
        self.goals = [{"category": ("beauty", "garden")[n % 2], "item": f"item {n}"} for n in range(506)]
        self.user_sessions = {}


class WebAgentTextEnv:
    def __init__(self, observation_mode, server):
        self.server, self.session, self.session_prefix = server, "first", None
        assert observation_mode == "text"

    def reset(self, session):
        self.session, self.page = f"{self.session_prefix}{session}", "search"
        assert self.session not in self.server.user_sessions
        self.server.user_sessions[self.session] = self.server.goals[session]
        return self.seen(), None

    def seen(self):
        return f"Instruction: buy {self.server.user_sessions[self.session]['item']} [SEP] {self.page}"

    def get_available_actions(self):
        on_search = self.page == "search"
        return {"has_search_bar": on_search, "clickables": ["search"] if on_search else ["back to search", "buy now"]}

    def step(self, action):
        if action.startswith("search["):
            self.page = action[7:-1]
        if action != "click[buy now]":
            return self.seen(), 0.0, False, None
        return "Thank you", 1.0 if self.page == self.server.user_sessions[self.session]["item"] else 0.5, True, None
