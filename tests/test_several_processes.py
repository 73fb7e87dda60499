"""What tests leave out of the output of several processes."""

import several_processes


def test_lines_of_gloo_are_left_out_where_threads_mix_them():
  connected = 'is connected to 1 peer ranks. '
  expected = 'Expected number of connected peer ranks is : 1'
  output = (
    f'[Gloo] Rank 0 {connected}{expected}\n'
    f'[Gloo] Rank [Gloo] Rank 1 {connected}{expected}\n'
    f'0 {connected}{expected}1\n'
    '\n'
    'error: 2 ranks are missing\n'
  )
  kept = '\nerror: 2 ranks are missing\n'
  assert several_processes.leave_out_gloo(output) == kept
