public import Foundation
import KeepsakeReplication

/// Why a world doesn't settle: what is left to do for each device, and what prevents it.
public struct UnsettledError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
  /// What is left to do between one device and the cloud.
  public struct Debt: Sendable, Hashable, CustomStringConvertible {
    /// The device's name.
    public let device: String
    /// Saves, values and checkpoints that aren't known to be in the cloud, including refused ones.
    public let unsentCommits: Int
    /// Why the cloud refused some of them, as sentences.
    public let refusals: [String]
    /// Whether there are money operations that the bank doesn't know.
    public let hasUnreportedMoney: Bool
    /// Whether the cloud has anything that isn't visible on the device.
    public let isBehind: Bool
    /// The error of the last attempt; nil if it succeeded.
    public let failure: String?

    public var description: String {
      var parts: [String] = []
      if unsentCommits > 0 { parts.append("has \(CountText.of(unsentCommits, "unsent commit"))") }
      if hasUnreportedMoney { parts.append("has money operations that the bank doesn't know") }
      if isBehind { parts.append("hasn't received everything that the cloud has") }
      parts += refusals.map { "was refused: \($0)" }
      if let failure { parts.append(failure) }
      return "\(device) " + (parts.isEmpty ? "keeps changing" : parts.joined(separator: "; "))
    }
  }

  /// One entry for each device with something left to do, by name.
  public let debts: [Debt]

  public var description: String {
    "The world doesn't settle: " + debts.map(\.description).joined(separator: ". ") + "."
  }

  public var errorDescription: String? { description }
}
