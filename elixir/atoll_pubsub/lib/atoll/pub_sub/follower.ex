# SPDX-License-Identifier: Apache-2.0
defmodule Atoll.PubSub.Follower do
  @moduledoc """
  The process that claims what is followed on this node, and notes when the node may lack claims of others.

  All who wait to follow share one *round*: the claim is put, which broadcasts it, and a broadcast after it is
  acknowledged by all members. Those who come meanwhile wait for the next round. A round that fails is done again until
  the time of those who wait is over; a member that has died is waited for no more by then.

  It also forgets the claims of nodes that are gone.
  """

  use GenServer

  require Logger

  alias Atoll.PubSub.{Claims, Follows}

  @tidy_ms 10_000
  @again_ms 100

  @doc "The caller follows a topic when all members know it."
  @spec follow(Atoll.PubSub.config(), binary) :: :ok | {:error, term}
  def follow(config, topic), do: GenServer.call(config.follower, {:follow, topic}, :infinity)

  @spec unfollow(Atoll.PubSub.config(), binary) :: :ok
  def unfollow(config, topic), do: GenServer.call(config.follower, {:unfollow, topic})

  @doc false
  def start_link(config), do: GenServer.start_link(__MODULE__, config, name: config.follower)

  @impl true
  def init(config) do
    case :atoll.subscribe([:member_up, :member_down, :missed, :reborn]) do
      :ok ->
        Claims.doubt(config)
        Process.send_after(self(), :tidy, @tidy_ms)

        # Nobody follows anything yet, so nobody is waited for: while a cluster starts that takes seconds.
        with {:error, reason} <- put(config, MapSet.new()), do: warn(reason)

        # `waiting` are those for the next round, `asking` those of the round under way, with its slots.
        state = %{config: config, follows: %Follows{}, monitors: %{}, waiting: [], asking: nil, absent: []}
        {:ok, state}

      {:error, reason} ->
        {:stop, reason}
    end
  end

  @impl true
  def handle_call({:follow, topic}, {pid, _} = from, state) do
    if length(state.waiting) >= state.config.follows_max do
      {:reply, {:error, :overloaded}, state}
    else
      {known, follows} = Follows.follow(state.follows, pid, topic)
      state = monitored(%{state | follows: follows}, pid)

      if known,
        do: {:reply, :ok, state},
        else: {:noreply, ask(%{state | waiting: [{from, topic, now() + state.config.follow_ms} | state.waiting]})}
    end
  end

  def handle_call({:unfollow, topic}, {pid, _}, state) do
    {:reply, :ok, unfollowed(state, pid, topic)}
  end

  def handle_call(:read, _from, state), do: {:reply, :ok, state}

  @impl true
  def handle_info({:atoll, kind, _details}, state) when kind in [:member_up, :missed, :reborn] do
    Claims.doubt(state.config)
    {:noreply, state}
  end

  def handle_info({:atoll, :member_down, %{node: node}}, state) do
    if node != node(), do: Claims.forget(state.config.claims, node)
    {:noreply, state}
  end

  def handle_info({:DOWN, ref, :process, _pid, {:round, outcome}}, %{asking: {ref, slots, callers}} = state) do
    {:noreply, answered(outcome, slots, callers, %{state | asking: nil})}
  end

  def handle_info({:DOWN, ref, :process, _pid, reason}, %{asking: {ref, slots, callers}} = state) do
    {:noreply, answered({:error, reason}, slots, callers, %{state | asking: nil})}
  end

  def handle_info({:DOWN, _ref, :process, pid, _reason}, state) do
    {:noreply, %{state | follows: Follows.gone(state.follows, pid), monitors: Map.delete(state.monitors, pid)}}
  end

  def handle_info(:again, state), do: {:noreply, ask(state)}

  def handle_info(:tidy, state) do
    Process.send_after(self(), :tidy, @tidy_ms)
    {:noreply, forget_absent(narrow(state))}
  end

  ## Rounds

  defp ask(%{asking: nil, waiting: [_ | _] = callers} = state) do
    slots = Follows.widen(state.follows)
    config = state.config
    {_pid, ref} = spawn_monitor(fn -> exit({:round, round(config, slots)}) end)
    %{state | asking: {ref, slots, callers}, waiting: []}
  end

  defp ask(state), do: state

  defp answered(:ok, slots, callers, state) do
    for {from, _, _} <- callers, do: GenServer.reply(from, :ok)
    ask(%{state | follows: Follows.known(state.follows, slots)})
  end

  defp answered({:error, reason}, _slots, callers, state) do
    {again, over} = Enum.split_with(callers, fn {_, _, deadline} -> now() < deadline end)
    for {from, _, _} <- over, do: GenServer.reply(from, {:error, reason})
    Process.send_after(self(), :again, @again_ms)

    Enum.reduce(over, %{state | waiting: again ++ state.waiting}, fn {{pid, _}, topic, _}, acc ->
      unfollowed(acc, pid, topic)
    end)
  end

  # The broadcasts of one node come in order, so who acknowledges the second has had the first.
  defp round(config, slots) do
    with :ok <- put(config, slots),
         {:ok, _nodes} <- :atoll.broadcast({config.adapter, :claimed}, node(), %{ack: :all}),
         do: :ok
  end

  defp put(config, slots) do
    claim = Claims.claim(Claims.stamp(config.claims), config.tracked, MapSet.to_list(slots))
    :atoll_handler.put(config.claims, node(), claim)
  end

  # Not while a round is under way: its claim would have more than this one, and come first.
  defp narrow(%{asking: nil} = state) do
    case Follows.narrow(state.follows) do
      {:same, _} ->
        state

      {slots, follows} ->
        # What is not told now is told by a comparison.
        with {:error, reason} <- put(state.config, slots), do: warn(reason)
        %{state | follows: follows}
    end
  end

  defp narrow(state), do: state

  # A claim may come before the member, or be brought back after it.
  defp forget_absent(state) do
    absent = Claims.nodes(state.config.claims) -- [node() | :atoll.members()]
    for node <- absent, node in state.absent, do: Claims.forget(state.config.claims, node)
    %{state | absent: absent}
  end

  ## Those who follow

  defp monitored(state, pid) when is_map_key(state.monitors, pid), do: state
  defp monitored(state, pid), do: %{state | monitors: Map.put(state.monitors, pid, Process.monitor(pid))}

  defp unfollowed(state, pid, topic) do
    follows = Follows.unfollow(state.follows, pid, topic)

    case {Follows.follows?(follows, pid), state.monitors} do
      {false, %{^pid => ref}} ->
        Process.demonitor(ref, [:flush])
        %{state | follows: follows, monitors: Map.delete(state.monitors, pid)}

      _ ->
        %{state | follows: follows}
    end
  end

  defp warn(reason) do
    Logger.warning("Atoll.PubSub: what this node follows was not told to all members: #{inspect(reason)}")
  end

  defp now, do: System.monotonic_time(:millisecond)
end
