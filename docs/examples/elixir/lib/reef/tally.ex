defmodule Reef.Tally do
  use GenServer

  # Once in the group fish: its nodes know it by this name.
  @name {:via, :atoll_name, {:fish, "tally"}}

  def start_link(_), do: GenServer.start_link(__MODULE__, 0, name: @name)

  def increment, do: GenServer.call(@name, :increment)

  def value, do: GenServer.call(@name, :value)

  @impl true
  def init(count), do: {:ok, count}

  @impl true
  def handle_call(:increment, _from, count), do: {:reply, count + 1, count + 1}
  def handle_call(:value, _from, count), do: {:reply, count, count}
end
