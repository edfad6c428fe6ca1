// The cells of a grid of interventions.
#pragma once

#include <string>
#include <vector>

namespace sinkscope {

/// One intervention, in the words of the command line.
struct Cell {
  std::string name;     ///< "plain", "columns-5", "columns-5-random": its folder
  int top_k = 0;        ///< 0: nothing is masked
  std::string rank;     ///< "" where nothing is masked
  std::string control;  ///< "none" for the sinks themselves
};

/// "0,1,5,10" -> numbers from 0 on. `option` names the list in the UsageError.
std::vector<int> parse_numbers(const std::string& text, const std::string& option);
/// "columns,last" -> names, none of them empty or there twice. Throws UsageError.
std::vector<std::string> parse_names(const std::string& text, const std::string& option);

/// Every number of masked keys with every rank and control; nothing masked is one cell, the first. Ranks in
/// the order given, of each the numbers, of each the controls.
std::vector<Cell> grid_cells(const std::vector<int>& top_ks, const std::vector<std::string>& ranks,
                             const std::vector<std::string>& controls);

}  // namespace sinkscope
