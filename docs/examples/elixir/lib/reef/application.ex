defmodule Reef.Application do
  use Application

  @impl true
  def start(_type, _args) do
    Supervisor.start_link([Reef.Counter], strategy: :one_for_one, name: Reef.Supervisor)
  end
end
