# SPDX-License-Identifier: Apache-2.0
defmodule Atoll.PubSub.Receiver do
  @moduledoc """
  The process to which messages of other nodes come, over the overlay or as plain messages; it hands them to the
  subscribers of this node.

  No more than `queue_max` messages are handed on that wait for it: while there are more the oldest is dropped and
  counted. That takes less than a microsecond, so the queue cannot grow as it could where dispatching is slow.
  """

  use GenServer

  require Logger

  @doc "Sends a message to one node, this one too."
  @spec tell(Atoll.PubSub.config(), node, binary, term, module) :: :ok
  def tell(config, node, topic, message, dispatcher) do
    send({config.adapter, node}, {:atoll_pubsub, {topic, message, dispatcher}})
    :ok
  end

  @doc false
  def start_link(config), do: GenServer.start_link(__MODULE__, config, name: config.adapter)

  @impl true
  def init(config) do
    case :atoll.subscribe({:broadcast, config.adapter}) do
      :ok -> {:ok, %{config: config, dropping: false}}
      {:error, reason} -> {:stop, reason}
    end
  end

  # Phoenix has served this node's own.
  @impl true
  def handle_info({:atoll, :broadcast, %{from: from}}, state) when from == node(), do: {:noreply, state}
  def handle_info({:atoll, :broadcast, %{payload: payload}}, state), do: {:noreply, receive_one(payload, state)}
  def handle_info({:atoll_pubsub, payload}, state), do: {:noreply, receive_one(payload, state)}

  def handle_info(_of_a_later_release, state) do
    Atoll.PubSub.count(state.config, :unknown)
    {:noreply, state}
  end

  defp receive_one({topic, message, dispatcher}, %{config: config} = state) do
    {:message_queue_len, waiting} = Process.info(self(), :message_queue_len)

    if waiting > config.queue_max do
      Atoll.PubSub.count(config, :dropped)
      unless state.dropping, do: Logger.warning("Atoll.PubSub: more than #{config.queue_max} wait; the oldest go")
      %{state | dropping: true}
    else
      Atoll.PubSub.count(config, :received)
      Phoenix.PubSub.local_broadcast(config.pubsub, topic, message, dispatcher)
      %{state | dropping: state.dropping and waiting > div(config.queue_max, 2)}
    end
  end

  defp receive_one(_of_a_later_release, state) do
    Atoll.PubSub.count(state.config, :unknown)
    state
  end
end
