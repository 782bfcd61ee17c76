Feature: Restart
  What a server still knows once it has started anew.

  @RESTART-2 @MUST @needs-restart
  Rule: Plans, overrides, operations and log entries survive a restart

    @needs-policy @needs-plans
    Scenario: plan and override
      Given a rested user on the smallest plan
      When they are moved to the next larger plan
      And their burst is raised by an override
      And the server starts anew
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

    @needs-operations
    Scenario: operations
      Given a user with tokens to spare
      When their operations are bought
      And they send a valid request
      And their operations are counted
      And the server starts anew
      Then they have as many operations left and used as before

    @needs-audit
    Scenario: log entries
      Given a user with tokens to spare
      When they send a valid request
      And the server starts anew
      Then it left one log entry, not marked rejected
